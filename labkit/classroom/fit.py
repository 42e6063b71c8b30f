"""Which submissions are given to nbgrader at all. It follows links, and copies what they name into the feedback."""
import json
import os
import stat
from pathlib import Path

LARGEST_NOTEBOOK, LARGEST, MOST_FILES = 5 << 20, 20 << 20, 200     # bytes, bytes, files of one submission


def unfit(folder):
    """Why a submission's folder is not graded, in words; "" where it is. The folder is COURSE/submitted/STUDENT/ASSIGNMENT."""
    names = sorted(path.name for path in (folder.parents[2] / "source" / folder.name).glob("*.ipynb")) or [f"{folder.name}.ipynb"]
    return _odd(folder) or _misnamed(folder, names) or next(filter(None, (_broken(folder / name) for name in names if (folder / name).exists())), "")


def _odd(folder):
    """Links and other things that are no ordinary files, too much of anything; or ""."""
    total = count = 0
    if folder.is_symlink() or folder.parent.is_symlink():
        return "it is a link to another folder"
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(place, name)
            about = path.lstat()
            count += 1
            if stat.S_ISDIR(about.st_mode):
                continue
            if not stat.S_ISREG(about.st_mode):
                return f"{path.relative_to(folder)} is no ordinary file"
            total += about.st_size
            if name.endswith(".ipynb") and about.st_size > LARGEST_NOTEBOOK:
                return f"{path.relative_to(folder)} has {about.st_size >> 20} MiB"
        if count > MOST_FILES or total > LARGEST:
            return f"more than {MOST_FILES} files or {LARGEST >> 20} MiB"
    return ""


def _misnamed(folder, names):
    """Words where no notebook has one of these names."""
    if any((folder / name).exists() for name in names):
        return ""
    others = [path.name for path in sorted(folder.glob("*.ipynb"))]
    return f"its notebook is called {others[0]!r}; call it {names[0]} and autograde again" if len(others) == 1 else \
        f"none of its notebooks is called {names[0]}: {', '.join(others)[:200]}" if others else f"there is no notebook {names[0]} in it"


def _broken(path):
    """Words where a file is no notebook that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        good = found["nbformat"] >= 4 and isinstance(found["cells"], list)
    except (OSError, ValueError, RecursionError):
        return f"{path.name} is no notebook: no JSON in it. Ask for it again"
    except (KeyError, TypeError):
        good = False
    return "" if good else f"{path.name} is no notebook of today's format (4). Ask for it again, saved by JupyterLab"
