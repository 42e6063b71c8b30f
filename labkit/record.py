"""Run every lesson on this GPU and keep what it showed: the recordings the kit ships.

Each notebook runs top to bottom in a fresh kernel of this Python, with LABKIT_RECORD set, so that
`measure` and `timeline` leave their figures in the same folder. Beside them lies what each lesson took
of the GPU's memory, and what it left, and what CuPy and PyTorch answer. `tools/build_notebooks.py --from` takes the folder in. Needs
nbclient, nbformat and ipykernel; JupyterLab may be missing.
"""

import contextlib
import datetime
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from labkit import cells, libraries, recordings
from labkit.backend import backend, cudart
from labkit.errors import LabError, ok

CELL_TIMEOUT = 120  # seconds
NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
# Run when a lesson is over, in its own kernel: bytes of graph memory that it left in use.
LEFT = """from labkit import cudart, ok
print(int(ok(cudart.cudaDeviceGetGraphMemAttribute(0, cudart.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent))))"""


def _client(notebook, folder):
    """An nbclient for `notebook` whose kernel is this Python, whatever kernels are installed."""
    from ipykernel.kernelspec import RESOURCES, get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class ThisPython(AsyncKernelManager):
        kernel_spec = KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())

    return NotebookClient(notebook, kernel_manager_class=ThisPython, timeout=CELL_TIMEOUT, record_timing=False,
                          resources={"metadata": {"path": folder}})


def run(notebook, out=None):
    """Run `notebook` in place; with `out`, its measurements are recorded into that folder.

    Raises nbclient's CellExecutionError where a cell raises, CellTimeoutError after 120 s.
    """
    env = dict(os.environ)
    env.pop("LABKIT_RECORD", None)
    if out is not None:
        env["LABKIT_RECORD"] = str(Path(out).resolve())
    with tempfile.TemporaryDirectory() as folder:
        _client(notebook, folder).execute(env=env, stderr=subprocess.DEVNULL)  # only the kernel's own log goes there
    return notebook


def run_and_weigh(notebook, out=None):
    """run(), and what the lesson took: {"peak_mib": of device memory, its CUDA context included, "graph_bytes_left": graph memory in use at its end}.

    The peak is read from outside, every few milliseconds, so other programs on the GPU count as well.
    Stands for: CUDA Runtime API, cudaMemGetInfo, cudaDeviceGetGraphMemAttribute.
    """
    from nbformat.v4 import new_code_cell
    notebook["cells"].append(new_code_cell(LEFT))
    try:
        with _lowest_free() as free:
            run(notebook, out)
    finally:
        last = notebook["cells"].pop()
    return {"peak_mib": -(-(free["before"] - free["lowest"]) // 2 ** 20), "graph_bytes_left": int(cells.printed(last["outputs"]).split()[-1])}


@contextlib.contextmanager
def _lowest_free():
    """{"before": free bytes of the GPU now, "lowest": the fewest while the block ran}."""
    free = ok(cudart.cudaMemGetInfo())[0]
    found, over = {"before": free, "lowest": free}, threading.Event()

    def look():
        while not over.wait(0.004):
            found["lowest"] = min(found["lowest"], ok(cudart.cudaMemGetInfo())[0])
    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        over.set()
        looking.join()


def stamp(notebook, where):
    """Mark every code cell of a notebook that has just run: its digest, and where it ran."""
    for cell, digest in zip(cells.code_cells(notebook), cells.digests(notebook)):
        cell["outputs"] = cells.settle(cell["outputs"])
        cell["metadata"]["labkit"] = {"digest": digest, "recorded": where, "outputs": cells.seal(cell["outputs"], where)}
    return notebook


def here():
    """GPU, driver, CUDA and day in one line, as recorded cells carry it."""
    if backend.name != "gpu":
        return f"the simulator · no driver · no CUDA · {datetime.date.today().isoformat()}"
    return str(recordings.here("recorded"))


def main(out, only=None, allow_sim=False):
    """Record the lessons into the folder `out`; `only`: part of a name, to record those alone.

    Returns the paths written. Raises LabError on the simulator, which has nothing to record
    (`allow_sim` is for the kit's own tests), and when a lesson failed, after the others ran.
    """
    if backend.name != "gpu" and not allow_sim:
        raise LabError("You asked to record on the simulator.",
                       "A recording is what a GPU answered; the simulator only repeats recordings.",
                       f"Run it on a machine with a GPU. Here: {backend.reason}.")
    import nbformat
    names = [p for p in sorted(NOTEBOOKS.glob("*.ipynb")) if (only or "") in p.name]
    if not names:
        raise LabError(f"No notebook in {NOTEBOOKS} has {only or 'a name'!r} in its name.",
                       "There is nothing to record.", "Run tools/build_notebooks.py, or leave the name out.")
    folder, weights = Path(out) / "notebooks", Path(out) / "lessons"
    for each in (folder, weights):
        each.mkdir(parents=True, exist_ok=True)
    written, failed = [], []
    for path in names:
        started = time.perf_counter()
        try:
            notebook = nbformat.read(str(path), as_version=4)
            weight = run_and_weigh(notebook, out)
        except Exception as error:  # the other lessons still record; what failed is raised below
            failed.append(f"{path.name}: {str(error).strip().splitlines()[-1]}")
            print(f"{path.name}: FAILED\n{error}")
            continue
        written.append(folder / path.name)
        text = nbformat.writes(stamp(notebook, here()), version=4)
        written[-1].write_text(text + "\n", encoding="utf-8", newline="\n")
        weight = {"digest": cells.digests(notebook)[-1], "recorded": here(), **weight}
        (weights / f"{path.stem}.json").write_text(json.dumps(weight, indent=1) + "\n", encoding="utf-8", newline="\n")
        print(f"{path.name}: {time.perf_counter() - started:.1f} s, {weight['peak_mib']} MiB, {weight['graph_bytes_left']} bytes of graph memory left")
    if not only and backend.name == "gpu":
        for place in libraries.library_calls(run=True, folder=out).places:
            print(place)
    if failed:
        raise LabError("A lesson did not run to its end:\n    " + "\n    ".join(failed),
                       "Its outputs are not recorded; the other lessons' are.", "See the traceback above.")
    return written
