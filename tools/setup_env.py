"""Make .venv and install what fits this machine. What `make lab`, `make venv` and `make test` call.

    python tools/setup_env.py                       # for the notebooks: the extra `lab`
    python tools/setup_env.py --extras lab,dev --nvrtc   # for the tests
    python tools/setup_env.py --cuda 13             # the CUDA 13 packages, where the driver is new enough

Standard library only, because it runs before anything is installed; it works on Linux, macOS and
Windows. Does nothing where .venv is up to date, and starts again where it was interrupted. pip's
own settings (PIP_NO_INDEX, PIP_FIND_LINKS, PIP_INDEX_URL) hold, as pip runs as a child.
"""
# The top of this file must parse on an old Python, so that it can say that the Python is old.
import argparse
import collections
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST_PYTHON = (3, 11)
CUDA_EXTRAS = ("cuda12", "cuda13")
# extra: (smallest cuDriverGetVersion, release that brought it, smallest compute capability)
NEEDS = {"cuda12": (12000, 525, (5, 0)), "cuda13": (13000, 580, (7, 5))}
WHEELS = {("linux", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64")}   # where CUDA packages are published
NVRTC_WHEELS = {("linux", "x86_64"), ("linux", "aarch64")}

Choice = collections.namedtuple("Choice", "extra why")   # extra: "cuda12", "cuda13" or None


class CannotSetUp(Exception):
    """The reason, and what to do, for the person at the terminal."""


def choose(driver, wish="auto", system=(sys.platform, platform.machine())):
    """The Choice for what labkit.driver.ask() found. wish: auto, 12, 13 or none.

    Raises CannotSetUp where 12 or 13 was asked for by name and does not fit; auto never raises.
    """
    if wish not in ("auto", "12", "13", "none"):
        raise CannotSetUp("CUDA=%s is not known: it is auto, 12, 13 or none." % wish)
    if wish == "none":
        return Choice(None, "no CUDA package, as CUDA=none asks; the notebooks run on the simulator")
    extra = "cuda13" if wish == "13" else "cuda12"
    lack = _lack(driver, extra, system)
    if not lack:
        return Choice(extra, "the CUDA %s packages, for %s with a driver for CUDA %s%s" % (
            extra[-2:], driver.name or "a GPU", driver.speaks, driver.release and " (%s)" % driver.release))
    if wish == "auto":
        return Choice(None, "no CUDA package, because %s; the notebooks run on the simulator" % lack)
    other = " Without CUDA=13 the CUDA 12 packages fit." if wish == "13" and not _lack(driver, "cuda12", system) else (
        " Without CUDA=%s the notebooks run on the simulator." % wish)
    raise CannotSetUp("CUDA=%s does not fit this machine: %s.%s" % (wish, lack, other))


def _lack(driver, extra, system):
    """What keeps this machine from using that extra, as a clause; empty where nothing does."""
    cuda, release, capability = NEEDS[extra]
    if system not in WHEELS:
        return "NVIDIA publishes no packages for %s %s" % system
    if driver.code is None:
        return "there is no NVIDIA driver"
    if 0 < driver.cuda < cuda:
        return "its driver%s speaks CUDA %s, and CUDA %s.0 needs release %d or newer" % (
            driver.release and " " + driver.release, driver.speaks, extra[-2:], release)
    if driver.broken:
        return "its driver does not start (cuInit answered %d; `labkit doctor` says more)" % driver.code
    if not driver.usable:
        return "the driver offers no GPU"
    if driver.capability < capability:
        return "%s has compute capability %d.%d, and CUDA %s needs %d.%d" % (
            (driver.name,) + driver.capability + (extra[-2:],) + capability)
    return ""


def check_python(version=sys.version_info, which=shutil.which, has=importlib.util.find_spec):
    """Raises CannotSetUp, with the Debian package to install, where this Python cannot make the environment."""
    if tuple(version[:2]) < OLDEST_PYTHON:
        newer = [n for n in ("python3.%d" % m for m in range(14, 10, -1)) if which(n)]
        raise CannotSetUp("This is Python %d.%d, and the lab kit needs 3.11 or newer. %s" % (
            version[0], version[1], "There is a %s here: add PYTHON=%s to the command." % (newer[0], newer[0]) if newer
            else "Debian 12, Ubuntu 24.04 and newer have one; `sudo apt install python3 python3-venv` there."))
    if not (has("venv") and has("ensurepip")):
        raise CannotSetUp(
            "This Python cannot make a virtual environment. On Debian or Ubuntu: sudo apt install python3-venv\n"
            "(for an interpreter that is not the default one: python%d.%d-venv)" % tuple(version[:2]))


def digest(extras):
    """Changes when what is to be installed changes, or the place or the Python it is installed for."""
    h = hashlib.sha256("\0".join([ROOT, sys.version, *sorted(extras)]).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as f:
            h.update(f.read())
    return h.hexdigest()


class Environment:
    """A virtual environment and the stamp in it that says what is inside: {"extras": [...], "digest": ...}.

    The stamp is first written without a digest, so that a half-made environment is known as ours and as half made.
    """

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.python = os.path.join(self.folder, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
        self.stamp = os.path.join(self.folder, "labkit-setup.json")

    def read(self):
        """(extras inside, digest); ([], "") where it is half made or not there."""
        try:
            with open(self.stamp, encoding="utf-8") as f:
                found = json.load(f)
            return list(found["extras"]), found["digest"]
        except (OSError, ValueError, KeyError, TypeError):
            return [], ""

    def write(self, extras, done):
        with open(self.stamp + ".part", "w", encoding="utf-8") as f:
            json.dump({"extras": sorted(extras), "digest": digest(extras) if done else ""}, f)
        os.replace(self.stamp + ".part", self.stamp)

    def works(self):
        """True where its Python starts; a system upgrade can take that away."""
        try:
            return subprocess.call([self.python, "-c", ""]) == 0
        except OSError:
            return False

    def create(self):
        """A new, empty one. Raises CannotSetUp where the folder holds something this script did not make."""
        if os.path.isdir(self.folder) and os.listdir(self.folder) and not os.path.exists(self.stamp):
            raise CannotSetUp("%s is there and this script did not make it. Move it away, or use it as it is:\n"
                              "  %s -m pip install -e .[lab] -c constraints.txt\n  %s -m labkit lab"
                              % ((self.folder,) + (self.python,) * 2))
        if os.path.isdir(self.folder):   # the stamp goes last, so that an interrupted removal is still known as ours
            for name in os.listdir(self.folder):
                path = os.path.join(self.folder, name)
                if path != self.stamp:
                    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        os.makedirs(self.folder, exist_ok=True)
        self.write([], done=False)
        _run([sys.executable, "-m", "venv", self.folder], "making the virtual environment")

    def install(self, extras):
        self.write([], done=False)
        _run([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
              "--constraint", os.path.join(ROOT, "constraints.txt"), "--editable", "%s[%s]" % (ROOT, ",".join(sorted(extras)))],
             "installing")
        self.write(extras, done=True)


def _run(command, what):
    code = subprocess.call(command, cwd=ROOT)
    if code:
        raise CannotSetUp("%s failed (exit %d); the lines above say why. The same command starts it again." % (what.capitalize(), code))


def wanted(inside, asked):
    """(extras to have, whether to start from an empty environment) where `inside` is installed and `asked` is asked for.

    What is there stays, so that `make lab` after `make test` removes nothing; but the two CUDA lines never mix.
    """
    inside, asked = set(inside), set(asked)
    line = asked & set(CUDA_EXTRAS)
    stray = (inside & set(CUDA_EXTRAS)) - line
    if "nvrtc" in inside and "cuda13" in line:
        stray.add("nvrtc")
    return sorted((inside | asked) - stray), bool(stray)


def set_up(folder, extras, nvrtc, wish, say=print):
    """Bring the environment up to date; say in one line what was chosen and why."""
    check_python()
    sys.path.insert(0, ROOT)
    from labkit import driver
    choice = choose(driver.ask(), wish)
    say("labkit: " + choice.why + ".")
    asked = set(extras) | ({choice.extra} if choice.extra else set())
    if nvrtc and not choice.extra and (sys.platform, platform.machine()) in NVRTC_WHEELS:
        asked.add("nvrtc")
    environment = Environment(folder)
    inside, found = environment.read()
    extras, afresh = wanted(inside, asked)
    works = found and environment.works()
    if works and not afresh and found == digest(extras):
        return
    say("labkit: setting up %s (a minute or two, once) ..." % os.path.relpath(environment.folder))
    if afresh or not works:
        environment.create()
    environment.install(extras)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dir", default=os.path.join(ROOT, ".venv"), help="where (default: .venv in the clone)")
    parser.add_argument("--extras", default="lab", help="extras of pyproject.toml, with commas (default: lab)")
    parser.add_argument("--nvrtc", action="store_true", help="without a GPU, install the kernel compiler too")
    parser.add_argument("--cuda", default="auto", help="auto, 12, 13 or none (default: auto)")
    given = parser.parse_args(arguments)
    try:
        set_up(given.dir, given.extras.split(","), given.nvrtc, given.cuda)
    except CannotSetUp as no:
        sys.exit(str(no))
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. The same command starts the set-up again.")


if __name__ == "__main__":
    main()
