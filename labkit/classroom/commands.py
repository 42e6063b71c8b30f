"""labkit classroom: export, autograde, nbgrader (its own commands, in the course's folder). docs/teaching.md has the steps."""
import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import typer

from labkit.errors import LabError

STEPS = """The teacher's side: an nbgrader course, and grading in a sandbox.

\b
1. A course in a new folder, with solutions, hidden tests and points:
     labkit classroom export COURSE
2. What you hand out, in COURSE/release (5 or 05_diamond):
     labkit classroom nbgrader COURSE generate_assignment 5
3. Submissions, in COURSE/submitted/STUDENT/05_diamond/05_diamond.ipynb:
   copy them there, or take them out of nbgrader's exchange (collect 5), or
   out of COURSE/downloaded/05_diamond/archive, where you put what a learning
   platform gave you:
     labkit classroom nbgrader COURSE zip_collect 5
4. Points, and what you should look at. Again: only what is new or changed:
     labkit classroom autograde COURSE
5. A page for each student, in COURSE/feedback, and a table, grades.csv:
     labkit classroom nbgrader COURSE generate_feedback 5
     labkit classroom nbgrader COURSE export

The form grader, what the sandbox stops, common wrong answers: docs/teaching.md."""
app = typer.Typer(help=STEPS, no_args_is_help=True)
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
        typer.echo(f"{count} exercise{'' if count == 1 else 's'} in {course / 'source'}. Next: labkit classroom nbgrader {course} generate_assignment {done[-1][0].split('/')[1] if count == 1 else 'NN_slug'}")


@app.command()
def autograde(course: Path = COURSE,
              student: str = typer.Option(None, help="Only this one's work."),
              assignment: str = typer.Option(None, help="Only this exercise: 5, 05 or 05_diamond."),
              force: bool = typer.Option(False, "--force", help="Grade again also what was graded and has not changed."),
              unsandboxed: bool = typer.Option(False, "--unsandboxed", help="Run submissions as you, without bubblewrap. For work of people you trust.")):
    """Grade what lies in submitted/ and is new or changed, each test in a sandbox. Exit code 1 where a submission could not be graded."""
    with _explained():
        from labkit.classroom import autograde as grader
        done = grader.autograde(course, student, assignment, not unsandboxed, force, lambda line: typer.echo(line, err=line == grader.WARNING))
        failed, kept = sum(one.score is None for one in done), sum(one.kept for one in done)
        typer.echo(f"{len(done) - failed - kept} graded, {kept} kept from before, {failed} not graded. The points are in {course / 'gradebook.db'}.")
        for name in sorted({one.assignment for one in done if one.score is not None and not one.kept}):
            typer.echo(f"Feedback: labkit classroom nbgrader {course} generate_feedback {name}")
        if failed:
            raise typer.Exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
def nbgrader(context: typer.Context, course: Path = COURSE):
    """nbgrader's own commands in the course's folder: generate_assignment, collect, generate_feedback, ... An exercise may be a number: 5."""
    with _explained():
        from labkit.classroom import course as courses
        courses.needs_nbgrader()
        if courses.read(course) is None:
            raise LabError(f"{course} is no course that labkit made.", "nbgrader would start one of its own there.", "`labkit classroom export DIR` makes one.")
        raise typer.Exit(subprocess.call([sys.executable, "-m", "nbgrader", *_named(course, context.args)], cwd=course, env=courses.with_tools()))


def _named(course, words):
    """nbgrader's words, with the name of an exercise for its number: generate_assignment 5 -> generate_assignment 05_diamond."""
    found = [path.name for path in sorted((course / "source").glob("*_*")) if len(words) > 1 and words[1].isdecimal() and path.name.partition("_")[0] == words[1].zfill(2)]
    return [words[0], *found, *words[2:]] if len(found) == 1 else words
