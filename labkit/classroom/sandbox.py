"""The command that runs a test in bubblewrap (Debian's package `bubblewrap`): what it sees, and as whom it runs.

It sees Python, its packages and labkit, read-only; an empty /tmp of its own in memory; no network, no other process, no
home folder, no course, no environment. Root's tests run as a user that nobody else is, because the kernel counts the
processes of ordinary users only. Anyone else's run in a user namespace of their own.
"""
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from labkit.errors import LabError

INSIDE = "/labkit-root"                # where the folder that holds labkit lies, inside
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin")
FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
SCRATCH = 64 << 20                     # bytes of /tmp
USERS = (61184, 65519)                 # the range that systemd keeps free for users that exist for one run only
SCRIPT = "labkit/classroom/inside.py"
EXCHANGE = "/usr/local/share/nbgrader"                 # nbgrader's default one, in a folder that is bound
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "LABKIT_BACKEND": "sim", "MPLBACKEND": "agg",
               "MPLCONFIGDIR": "/tmp" + "/matplotlib", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
ADVICE = "On Debian or Ubuntu: sudo apt install bubblewrap (0.7 or newer). Work of people you trust: labkit classroom autograde --unsandboxed."


def package():
    """The folder of the labkit package that is running."""
    return Path(__file__).resolve().parents[1]


def is_root():
    return hasattr(os, "geteuid") and os.geteuid() == 0


def user():
    """The user id that a test gets, or None for that of the caller."""
    return USERS[0] + os.getpid() % (USERS[1] - USERS[0]) if is_root() else None


def _pythons():
    """Folders outside of /usr that this Python needs, outer ones first."""
    found = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.base_exec_prefix)}
    found |= {one.resolve() for one in found} | {Path(os.path.realpath(sys.executable)).parent.parent}
    return sorted(one for one in found if one != Path("/") and Path("/usr") not in (one, *one.parents))


def _binds():
    """bwrap's arguments for what is seen."""
    out, made = [], set()

    def place(target):
        """The folders above a target, readable for the user inside."""
        for parent in reversed(Path(target).parents):
            if parent != Path("/") and parent not in made:
                made.add(parent)
                out.extend(["--perms", "0755", "--dir", str(parent)])

    for folder in SYSTEM:
        if os.path.islink(folder):
            out.extend(["--symlink", os.readlink(folder), folder])
        elif os.path.isdir(folder):
            out.extend(["--ro-bind", folder, folder])
    if os.path.isdir(EXCHANGE):                        # other people's work may lie there
        out.extend(["--tmpfs", EXCHANGE])
    for name in FILES:
        if os.path.exists(name):
            place(name)
            out.extend(["--ro-bind", name, name])
    out.extend(["--proc", "/proc", "--dev", "/dev"])
    for target, size in (("/tmp", SCRATCH), ("/dev/shm", 1 << 20)):
        out.extend(["--perms", "1777", "--size", str(size), "--tmpfs", target])
    for folder in _pythons():                          # after /tmp: one of them may lie in it
        place(folder)
        out.extend(["--ro-bind", str(folder), str(folder)])
        made.add(folder)
    place(f"{INSIDE}/labkit")
    return [*out, "--ro-bind", str(package()), f"{INSIDE}/labkit", "--remount-ro", "/", "--remount-ro", "/dev"]


def command():
    """The command line up to the channel's number. Raises LabError where bwrap is missing."""
    bwrap = shutil.which("bwrap")
    if not bwrap:
        raise LabError("labkit found no bwrap on this machine.", "It is the sandbox in which submissions run; without it their code would run as you.", ADVICE)
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    rights = ["--cap-drop", "ALL", *(["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if is_root() else ["--unshare-user"])]
    env = [word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)]
    return [bwrap, *apart, *rights, "--die-with-parent", "--new-session", "--clearenv", *env, *_binds(),
            "--chdir", "/tmp", "--", sys.executable, "-I", "-u", f"{INSIDE}/{SCRIPT}"]


def bare_command():
    """The same without a sandbox."""
    return [sys.executable, "-I", "-u", str(package().parent / SCRIPT)]


@functools.cache
def _works(path):
    """"" where bwrap makes a sandbox here, else what it answered."""
    done = subprocess.run([*command()[:-4], sys.executable, "-I", "-c", "import os; os.listdir('/labkit-root/labkit')"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else (done.stderr or f"exit {done.returncode}").strip().splitlines()[-1]


def require():
    """Raises LabError where no sandbox can be made here: bwrap is missing, too old, or not allowed to."""
    command()
    answer = _works(os.environ.get("PATH"))
    if answer:
        raise LabError(f"bwrap makes no sandbox here: {answer[:300]}.", "Submissions would run with your rights, so none was run.",
                       "In a container it needs the right to make namespaces; Ubuntu 24.04 wants an AppArmor profile for bwrap. " + ADVICE)
