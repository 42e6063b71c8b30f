"""What gpu_to_yourself() says while it waits, and to whom it points."""
import getpass
import os
import time

from labkit import lock_file

PATIENCE, PAUSE = 0.5, 0.05               # seconds: until it says that it waits, and between two tries


class Wait:
    """Tries until it works, says once that it waits and for whom, and in the end that it goes on."""

    def __init__(self, path, what):
        self.path, self.what, self.began, self.told = path, what, time.monotonic(), False

    def until(self, attempt):
        while not attempt():
            if not self.told and time.monotonic() - self.began > PATIENCE:
                self.told = True
                say(f"waiting for the GPU: {in_words(lock_file.holder(self.path))}")
            time.sleep(PAUSE)             # short sleeps, so that Ctrl+C ends the wait on every system

    def over(self):
        if self.told:
            say(f'the GPU is free after {time.monotonic() - self.began:.0f} s: on with "{self.what}"')


def in_words(found):
    """alice, process 4711, measures "launch cost" since 14:03:22"""
    who, pid, what, since = ("".join(c for c in str(found.get(key, "")) if c.isprintable())[:60] for key in ("user", "pid", "what", "since"))
    return f'{who}, process {pid}, measures "{what}" since {since}' if who else "somebody measures"


def user():
    """The name of who runs this, as the system knows it, or its number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "somebody"


_said = set()


def say(line):
    """Print a line at once; nothing while recording, since what a lesson shows must not depend on its neighbours."""
    if not os.environ.get("LABKIT_RECORD"):
        print(line, flush=True)


def say_once(line):
    """Print a line, the first time only."""
    if line not in _said:
        _said.add(line)
        say(line)
