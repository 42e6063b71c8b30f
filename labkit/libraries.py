"""What CuPy and PyTorch answer inside a capture: library_calls().

    calls = library_calls()               # recorded on the GPU that the table names
    calls.only("cupy", "WARM")            # a part of it; shows itself as a table, .figure() as a picture
    library_calls(run=True)               # run all of them here, each in a process of its own: minutes

A program has three parts, all short source text: `before` the capture, `inside` it, and `after` its end, where
launch() replays the graph, `got` is the value that came out and `want` the one its writer had in mind.
`labkit record` keeps what library_calls(run=True) found, a file a library, in labkit/data/libraries.
"""
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from labkit import recordings
from labkit.backend import backend, cudart
from labkit.errors import LabError
from labkit.library_programs import PROGRAMS, Program

LIMIT, JOBS = 110, 4      # seconds a child may take (importing PyTorch is most of it), and how many run at once


def plain(value):
    """A value as people write it: 2, not 2.0."""
    return re.sub(r"(\d)\.0\b", r"\1", str(value))


@dataclass(frozen=True)
class Call:
    """A program and what it said: the first error, when it came ("inside", "end", "after"), its CUDA code where it has one,
    the capture's state after the line, the values, whether the process captured again afterwards, how the process ended."""
    program: Program
    stage: str = ""
    error: str = ""
    code: int | None = None
    state: str = ""
    got: object = None
    want: object = None
    again: str = ""
    version: str = ""
    ended: str = "finished"

    @property
    def mode(self):
        """The capture's mode in CUDA's words; PyTorch has its own."""
        return {"global": "Global", "thread_local": "ThreadLocal", "relaxed": "Relaxed"}.get(self.program.mode, self.program.mode)

    @property
    def verdict(self):
        """"fine", "silent" (no error, another value), "lost" (the capture), "lives" (an error, and the capture goes on), "later", "not run"."""
        if self.ended != "finished" and not self.state or self.stage == "before":
            return "not run"
        if not self.error:
            return "fine" if self.got == self.want else "silent"
        return "later" if self.stage == "after" else "lives" if self.stage == "inside" and self.state == "Active" else "lost"

    @property
    def answer(self):
        """In a few words: "900 StreamCaptureUnsupported", the library's own error, or the value."""
        if self.verdict == "not run":
            return f"did not run: {self.error or self.ended}"
        if not self.error:
            return f"got {plain(self.got)}, not {plain(self.want)}" if self.verdict == "silent" else "no error" + f", {plain(self.got)}" * (self.got is not None)
        if self.code is None:
            status = re.search(r"\w+_STATUS_\w+", self.error)            # cuBLAS, cuFFT and others number their own
            return status[0] if status else self.error.split(":")[0]
        name = cudart.cudaError_t(self.code).name if self.code in {int(e) for e in cudart.cudaError_t} else "unknown"
        return f"{self.code} {name.removeprefix('cudaError')}"


WORDS = {"fine": "in the graph", "silent": "captured, and wrong", "lost": "lost", "lives": "goes on", "later": "ended well", "not run": "–"}


@dataclass(frozen=True, repr=False)
class Calls:
    """What library_calls() returned. rows: a tuple of Call. where: {library: (its version, Provenance)}. missing: why something is not here."""
    rows: tuple
    where: dict
    missing: str = ""

    def only(self, library=None, *words, mode=None):
        """The rows of one library, of these pitfall classes, in this mode. Raises LabError where nothing is left."""
        rows = tuple(r for r in self.rows if library in (None, r.program.library) and (not words or r.program.word in words)
                     and mode in (None, r.mode))
        if not rows:
            raise LabError(f"No row of {library!r}, {', '.join(words)}.", self.missing or "The table has none.",
                           f"It has {', '.join(sorted({r.program.library for r in self.rows})) or 'nothing'}.")
        return Calls(rows, {r.program.library: self.where[r.program.library] for r in rows}, self.missing)

    def count(self, verdict):
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def places(self):
        """Library, version, GPU, driver, date, measured or recorded: a line a library."""
        return [f"{name} {version} · {place}" for name, (version, place) in self.where.items()]

    def __repr__(self):
        cells = [("library", "mode", "what", "answer", "the capture")]
        cells += [(r.program.library, r.mode, r.program.title, r.answer, WORDS[r.verdict]) for r in self.rows]
        wide = [max(len(row[k]) for row in cells) for k in range(4)]
        lines = ["  ".join(f"{text:{w}}" for text, w in zip(row, [*wide, 0])).rstrip() for row in cells]
        return "\n".join([*lines, *self.places, *([self.missing] if self.missing else [])])

    def figure(self, title):
        """The same as a picture, a Figure, with its provenance in the corner."""
        from labkit.library_chart import chart
        return chart(self, title)


def library_calls(run=False, programs=PROGRAMS, folder=None):
    """What each program answered: Calls. run: run them here, each in a child process of at most 110 s; what cannot
    run (no GPU, or the library is missing) comes from the recording, and the table says so. folder: keep what ran there.
    Stands for: CUDA Runtime API, cudaStreamIsCapturing after each program's line.
    """
    rows, where, missing = [], {}, []
    for library in dict.fromkeys(program.library for program in programs):
        mine = [program for program in programs if program.library == library]
        if run and backend.name == "gpu" and find_spec(library):
            place = recordings.here()
            with ThreadPoolExecutor(JOBS) as pool:
                found = list(pool.map(_run, mine))
            if folder or os.environ.get("LABKIT_RECORD"):
                _save(folder or os.environ["LABKIT_RECORD"], library, found, place)
        else:
            found, place, lost = _recorded(library, mine)
            missing += [f"{library}: {lost} of {len(mine)} programs are not recorded"] * bool(lost)
            missing += [f"{library} did not run here: {'it is not installed' if backend.name == 'gpu' else 'it needs a GPU'}"] * run
        if found:
            where[library] = next((row.version for row in found if row.version), "of unknown version"), place
            rows += found
    return Calls(tuple(rows), where, "; ".join(missing))


def _run(program):
    """One program in a process of its own: Call."""
    from labkit.in_child import in_child
    text = (Path(__file__).parent / "library_child.py").read_text(encoding="utf-8")
    child = in_child(f"program = {program._asdict()!r}\n{text}", limit=LIMIT)
    said = [line.removeprefix("labkit: ") for line in child.printed.splitlines() if line.startswith("labkit: ")]
    return Call(program, **{"error": child.last_error, **json.loads(said[-1] if said else "{}")}, ended=child.ended)


def _save(folder, library, found, place):
    """Write the calls into `folder`, as _recorded() reads them."""
    file = Path(folder) / "libraries" / f"{library}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    calls = [{**asdict(row), "program": row.program._asdict()} for row in found]
    text = json.dumps({"provenance": {**asdict(place), "how": "recorded"}, "calls": calls}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8", newline="\n")


def _recorded(library, programs):
    """(the calls recorded for exactly these programs, Provenance, how many have none)."""
    file = recordings.DATA / "libraries" / f"{library}.json"
    if not file.exists():
        return [], None, len(programs)
    entry = json.loads(file.read_text(encoding="utf-8"))
    kept = {Program(**call["program"]): call for call in entry["calls"]}
    found = [Call(**{**kept[program], "program": program}) for program in programs if program in kept]
    return found, recordings.Provenance(**entry["provenance"]), len(programs) - len(found)
