"""The command `labkit`: lab, doctor, explain, the exercises, classroom, record. Rich and Typer are imported here and in classroom/commands.py."""
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labkit import workcopy
from labkit.classroom.commands import app as classroom
from labkit.errors import LabError
from labkit.raised import explained

app = typer.Typer(help="The CUDA Graphs lab kit.", no_args_is_help=True, add_completion=False,
                  pretty_exceptions_enable=False)
app.add_typer(classroom, name="classroom")
_out = Console(highlight=False, soft_wrap=True)
_SAID = {
    "new": "new in work/",
    "replaced": "updated (you had not changed it)",
    "beside": "you changed it; the newer version is beside it, as {new}",
    "waiting": "there is a newer version, but {new} holds changes of yours: rename it and start again",
    "failed": "left alone: {why}",
}


@contextlib.contextmanager
def _explained():
    """A LabError ends the command with its text; nobody at a terminal needs the traceback."""
    try:
        yield
    except LabError as no:
        typer.echo(str(no), err=True)
        raise typer.Exit(1) from None


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
             add_help_option=False)
def lab(context: typer.Context):
    """Open JupyterLab on work/, your own copy of the notebooks. Options go to JupyterLab (--no-browser, --port)."""
    with _explained():
        root = workcopy.clone()
        first_time = not (root / "work" / workcopy.MANIFEST).exists()
        _tell(workcopy.refresh(root), first_time)
        command = jupyter(root / "work", context.args, first_time)
        become(command)


def become(command):
    """Hand this process, and with it Ctrl+C, over to `command`."""
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    child = subprocess.Popen(command)  # Windows' exec would give the terminal back while JupyterLab still writes to it
    while True:
        with contextlib.suppress(KeyboardInterrupt):     # JupyterLab gets it too, and ends by itself
            raise typer.Exit(child.wait())


def jupyter(work, given, first_time=False):
    """The command line that serves `work`: this Python, this machine only, Jupyter's own token. Raises LabError."""
    if not importlib.util.find_spec("jupyterlab"):
        raise LabError("labkit lab starts JupyterLab.", "It is not installed for this Python, " + sys.executable + ".",
                       "Run `make lab`, or `pip install -e .[lab] -c constraints.txt` in the clone.")
    lessons = sorted((work / "notebooks").glob("*.ipynb"))
    page = f"/lab/tree/notebooks/{lessons[0].name}" if first_time and lessons else "/lab"
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []   # containers
    return [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={work}", "--ServerApp.ip=localhost",
            f"--LabApp.default_url={page}", *as_root, *given]


def _tell(notes, first_time):
    """Say what happened to work/; the first time one line is enough."""
    if first_time and all(note.did == "new" for note in notes):
        _out.print(f"Your copies of {len(notes)} files are in work/; git does not look there.", markup=False)
        return
    for note in notes:
        new = Path(workcopy.beside(note.name)).name
        _out.print(f"{note.name}: {_SAID[note.did].format(new=new, why=note.why)}", markup=False)


@app.command()
def doctor():
    """What this machine has, which lessons it can run for real, and what to do about each lack."""
    from labkit import doctor as looks
    table = Table(box=None, show_header=False, padding=(0, 1))
    for row in looks.checks():
        style = {looks.OK: "green", looks.LACK: "bold red"}.get(row.state, "dim")
        found = Text(row.found) + Text(f"\n-> {row.todo}" if row.todo else "", style="yellow")
        table.add_row(Text(row.state if row.state != looks.NOTE else "", style=style), Text(row.what), found)
    Console(highlight=False).print(table)


@app.command()
def explain(code: list[str] = typer.Argument(..., help="A number, a name, CUDA's own text, or: no error.")):
    """What a CUDA code means, its usual causes, what to do, and the lesson that shows it."""
    with _explained():
        from labkit.explain import explain as page
        typer.echo(repr(page(" ".join(code))))


@contextlib.contextmanager
def _in_words():
    """Within: whatever goes wrong ends the command in words, and what the terminal can not show becomes a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    with _explained():
        try:
            yield
        except (LabError, typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            raise explained(error) from None


@contextlib.contextmanager
def _no_gpu():
    """_in_words(), and what judges nothing starts no GPU and says nothing of one."""
    os.environ["LABKIT_BACKEND"] = "sim"
    with _in_words():
        with contextlib.redirect_stdout(io.StringIO()):
            import labkit.backend  # noqa: F401
        yield


@app.command()
def check(exercise: str = typer.Argument(..., help="Its number, such as 05."), limit: float = typer.Option(120, help="Seconds that it may take.")):
    """Run your saved notebook of an exercise and judge its parts. Exit code 0: all right, 1: not yet."""
    with _in_words():
        from labkit import terminal
        said, right = terminal.check(terminal.named(exercise), limit)
        typer.echo(said)
        raise typer.Exit(0 if right else 1)


@app.command()
def hint(exercise: str = typer.Argument(..., help="Its number, such as 05."), part: str = typer.Argument(None, help="A function; without it the first one not solved.")):
    """The next of three hints for a part."""
    with _no_gpu():
        from labkit import terminal
        from labkit.exercise import next_hint
        typer.echo(next_hint(terminal.part_to_hint(terminal.named(exercise), part)))


@app.command()
def progress(picture: str = typer.Option(None, help="Also save the picture of the course there, as a PNG.")):
    """The exercises, and which of their parts are solved."""
    with _no_gpu():
        from labkit import terminal
        table = Table(box=None, padding=(0, 1))
        for name, side in (("", "left"), ("exercise", "left"), ("lesson", "left"), ("minutes", "right"), ("parts", "left"), ("hints", "right")):
            table.add_column(name, justify=side)
        console = Console(highlight=False)
        plain = not console.encoding.lower().startswith("utf")
        for number, title, lesson, minutes, marks, hints in terminal.rows():
            shown = marks.replace("■", "#").replace("□", ".") if plain else marks
            table.add_row(number, Text(title), lesson, str(minutes), Text(shown, style="dim" if "□" in marks else "green"), str(hints or ""))
        console.print(table)
        if picture is not None:
            typer.echo(f"The picture is {terminal.save_picture(picture)}.")
        typer.echo(terminal.following())


@app.command()
def reset(exercise: str = typer.Argument(..., help="Its number, such as 05.")):
    """Hand out an exercise anew. Your attempt stays beside it, under another name."""
    with _no_gpu():
        from labkit import anew, terminal
        kept = anew.reset(terminal.named(exercise))
        typer.echo(f"It is as it was handed out. {f'Your attempt is kept as {kept.name}.' if kept else 'There was no change of yours to keep.'}\nIf it is open in JupyterLab, close it there without saving, and open it again.")


@app.command("next")
def next_one():
    """The first exercise that is not done, and where it is."""
    with _no_gpu():
        from labkit import terminal
        typer.echo(terminal.following())


@app.command()
def record(out: Path = typer.Argument(..., help="The folder that takes the recordings."),
           only: str = typer.Option("", help="Part of a notebook's name, to record that one alone.")):
    """On a GPU: run the notebooks and keep what they answered."""
    with _explained():
        from labkit import record as recorder
        recorder.main(out, only or None)


if __name__ == "__main__":
    app()
