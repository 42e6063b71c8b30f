"""labkit classroom: export, autograde, nbgrader (its own commands, in the course's folder). docs/teaching.md has the steps."""
import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import typer

from labkit.errors import LabError

app = typer.Typer(help="The teacher's side: an nbgrader course, and grading in a sandbox.", no_args_is_help=True)
COURSE = typer.Argument(..., help="The course's folder.")


@contextlib.contextmanager
def _explained():
    os.environ["LABKIT_BACKEND"] = "sim"                 # nothing is run here, so no GPU is started and none is spoken of
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import labkit.backend  # noqa: F401
        yield
    except LabError as no:
        typer.echo(str(no), err=True)
        raise typer.Exit(1) from None


@app.command()
def export(course: Path = COURSE,
           only: list[str] = typer.Option([], help="An exercise's number; may be given several times. Without it: all."),
           seed: int = typer.Option(None, help="The secret of the hidden tests; a random one unless told.")):
    """Make or renew an nbgrader course from the exercises."""
    with _explained():
        from labkit.classroom import course as courses
        done = courses.export(course, only, seed)
        for name, what in done:
            if what == "kept":
                typer.echo(f"{name}: you changed it, so it was left alone")
        count = sum(name.endswith(".ipynb") for name, _ in done)
        typer.echo(f"{count} exercise{'' if count == 1 else 's'} in {course / 'source'}. Next, in {course}: nbgrader generate_assignment NN_slug")


@app.command()
def autograde(course: Path = COURSE,
              student: str = typer.Option(None, help="Only this one's work."),
              assignment: str = typer.Option(None, help="Only this exercise: 05, or 05_diamond."),
              force: bool = typer.Option(False, "--force", help="Grade again what is graded already."),
              unsandboxed: bool = typer.Option(False, "--unsandboxed", help="Run submissions as you, without bubblewrap. For work of people you trust.")):
    """Grade what lies in submitted/, each test in a sandbox. Exit code 1 where a submission could not be graded."""
    with _explained():
        from labkit.classroom import autograde as grader
        done = grader.autograde(course, student, assignment, not unsandboxed, force, lambda line: typer.echo(line, err=line == grader.WARNING))
        failed = sum(one.score is None for one in done)
        typer.echo(f"{len(done) - failed} graded, {failed} not. The points are in {course / 'gradebook.db'}.")
        if failed:
            raise typer.Exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
def nbgrader(context: typer.Context, course: Path = COURSE):
    """nbgrader's own commands in the course's folder: generate_assignment, collect, generate_feedback, ..."""
    with _explained():
        from labkit.classroom import course as courses
        courses.needs_nbgrader()
        if courses.read(course) is None:
            raise LabError(f"{course} is no course that labkit made.", "nbgrader would start one of its own there.", "`labkit classroom export DIR` makes one.")
        raise typer.Exit(subprocess.call([sys.executable, "-m", "nbgrader", *context.args], cwd=course, env=courses.with_tools()))
