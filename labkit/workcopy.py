"""work/, the learner's own copy of the notebooks and exercises. What `labkit lab` opens.

    refresh(clone())      # -> [Note("new", "notebooks/00_start_here.ipynb"), ...]

Nothing a learner wrote is ever overwritten. A file counts as unchanged where its cells' sources are
those that were handed out: running a notebook changes outputs, not sources. work/.labkit.json remembers
what was handed out; where it is lost, only files equal to the clone's count as unchanged.
Not here: a merge of two versions. The newer one lies beside, as NAME.new.ipynb, and the learner chooses.
"""
import errno
import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from labkit.errors import LabError

FOLDERS = ("notebooks", "exercises")
MANIFEST = ".labkit.json"


class Note(NamedTuple):
    """What was done with one file of work/. A file that needed nothing has no note.

    did: new (was missing), replaced (unchanged by the learner), beside (the clone's version is now in
    NAME.new.ipynb, as it is newer or the learner's file is no notebook any more), waiting (there is a newer one, but NAME.new.ipynb holds changes), failed. why: for failed.
    """
    did: str
    name: str
    why: str = ""


def clone():
    """The folder of the clone this labkit was installed from. Raises LabError where there is none."""
    root = Path(__file__).resolve().parent.parent
    if (root / "pyproject.toml").is_file() and (root / "notebooks").is_dir():
        return root
    raise LabError(f"labkit looked for the notebooks beside its own files, in {root}.",
                   "This labkit was installed away from its clone, so there is nothing to open.",
                   "Run `make lab` in a clone, or `pip install -e .[lab]` there and then `labkit lab`.")


def sources(data):
    """A digest of what a person writes in a notebook: cell types, sources and attachments, in order.

    Empty cells do not count: running the last cell adds one. Anything that is no notebook counts byte by byte.
    """
    try:
        written = [_written(cell) for cell in json.loads(data.decode("utf-8"))["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "bytes " + hashlib.sha256(data).hexdigest()
    return hashlib.sha256(json.dumps([w for w in written if w]).encode()).hexdigest()


def _written(cell):
    text = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    attached = cell.get("attachments") or {}
    return [cell["cell_type"], text, json.dumps(attached, sort_keys=True)] if text.strip() or attached else None


def unanswered(data):
    """A notebook's bytes without outputs: a learner predicts first, and what a cell shows should be their own."""
    try:
        notebook = json.loads(data)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None
    except (ValueError, KeyError, TypeError, RecursionError):
        return data                    # no notebook: handed out as it is
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def refresh(root, work=None):
    """Bring `work` (default: root/work) up to date with the clone at `root`; the list of Notes.

    Raises LabError where work/ itself cannot be written; a single file that resists is a Note.
    """
    work = Path(work or root / "work")
    try:
        work.mkdir(parents=True, exist_ok=True)
        handed = _Manifest(work / MANIFEST)
        notes = [note for name in _shipped(root) for note in _bring(root / name, work, name, handed)]
        handed.save()
    except OSError as no:
        raise LabError(f"labkit could not write your copy of the notebooks in {work}.", f"{no}.",
                       "Make the folder writable, or move it away: labkit then makes a new one.") from None
    return notes


def beside(name):
    """notebooks/a.ipynb -> notebooks/a.new.ipynb"""
    stem, dot, kind = name.rpartition(".")
    return f"{stem}.new.{kind}" if dot else f"{name}.new"


def _shipped(root):
    """Names of the files to hand out, as posix paths below the clone, in order; hidden ones are left out."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root)
            if path.is_file() and not any(part.startswith((".", "__")) for part in inside.parts):
                yield inside.as_posix()


def _bring(source, work, name, handed):
    """One file of the clone into work/; yields at most one Note."""
    try:
        data = unanswered(source.read_bytes()) if name.endswith(".ipynb") else source.read_bytes()
    except OSError as no:
        yield Note("failed", name, str(no))
        return
    newest = sources(data)
    if _broken(name, newest):
        yield Note("failed", name, "the clone's own file is no notebook; `git checkout` brings it back")
        return
    target, new = work / name, work / beside(name)
    try:
        mine = read(target)
        if mine is None:
            write(target, data)
            handed.note(name, newest, data)
            yield Note("new", name)
        elif sources(mine) in (newest, handed.sources(name)):
            new_outputs = handed.sources(name) == newest and handed.bytes(name) != _digest(data)
            if sources(mine) != newest or new_outputs:
                write(target, data)
                yield Note("replaced", name)
            handed.note(name, newest, data)
        elif newest != handed.sources(beside(name)) and (newest != handed.sources(name) or _broken(name, sources(mine))):
            theirs = read(new)
            if theirs is not None and sources(theirs) not in (newest, handed.sources(beside(name))):
                yield Note("waiting", name)
                return
            write(new, data)
            handed.note(beside(name), newest, data)
            yield Note("beside", name)
    except OSError as no:
        yield Note("failed", name, str(no))


def _broken(name, found):
    return name.endswith(".ipynb") and found.startswith("bytes")


def _digest(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    """The bytes of a file, None where there is none. Raises OSError for what is there and can not be read: a folder, a pipe, a link to nowhere."""
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not stat.S_ISREG(kind):                # reading a pipe would wait for ever
            raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))
        return Path(path).read_bytes()
    except FileNotFoundError:
        if os.path.islink(path):
            raise FileNotFoundError(errno.ENOENT, "it is a link to nowhere", str(path)) from None
        return None


def write(path, data):
    """All of `data` or nothing, so that an interrupt leaves the old file whole. Read-only flags are no protest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=".labkit-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.chmod(part, 0o644)
        if os.name == "nt" and path.exists():
            os.chmod(path, 0o644)      # Windows does not replace a read-only file
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


class _Manifest:
    """What was handed out under which name: {"name": [digest of the sources, digest of the bytes]}."""

    def __init__(self, path):
        self.path, self.files = path, {}
        try:
            found = json.loads(read(path) or b"")["files"]
            self.files = {name: entry for name, entry in found.items()
                          if isinstance(entry, list) and [type(e) for e in entry] == [str, str]}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass                       # lost or broken: every file is then compared with the clone's

    def sources(self, name):
        return self.files.get(name, ["", ""])[0]

    def bytes(self, name):
        return self.files.get(name, ["", ""])[1]

    def note(self, name, newest, data):
        self.files[name] = [newest, _digest(data)]

    def save(self):
        write(self.path, json.dumps({"files": self.files}, indent=1, sort_keys=True).encode())
