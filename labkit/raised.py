"""An exception in words, whatever its class: for a learner who is not to read a traceback."""
import os
import sysconfig
import traceback
from pathlib import Path

from labkit.errors import LabError

_HOME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_OTHERS = tuple({*sysconfig.get_paths().values()} - {sysconfig.get_paths()["data"], sysconfig.get_paths()["scripts"]}) + ("<frozen",)


def words(error):
    """Its class and the first line of what it says, also where it can not say anything."""
    try:
        said = str(error).strip().splitlines()
    except Exception:                            # its own __str__ fails
        said = []
    return type(error).__name__ + (f": {said[0][:300]}" if said else "")


def line(error):
    """The last line of the learner's own that it went through, or ""."""
    own = [frame.line for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((_HOME, *_OTHERS)) and frame.line]
    return own[-1][:200] if own else ""


def place(error):
    """Where it was raised: "terminal.py, line 20"."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "unknown"


def why(error):
    """What the system said: the reason of an OSError alone."""
    return error.strerror or words(error)


def explained(error):
    """Any exception of a command as a LabError."""
    kept = "What you wrote is in your work folder as it was."
    if isinstance(error, OSError):
        at = f": {error.filename}" if error.filename else ""
        return LabError(f"The system refused: {why(error)}{at}.", kept, "Make that file or folder one that you may read and write, then run the command again.")
    return LabError(f"labkit could not go on: {words(error)} ({place(error)}).", f"That is an error of labkit's own. {kept}", "Run the command again; where it says the same, tell your teacher or the kit's authors this line.")
