"""Where a program of a case is run: streams, buffers and launches, taken down afterwards whatever happened.

A Bench is one run with buffers of one size. What goes wrong is raised as Trouble: what was done, the
code or the values that were found, and those that were expected.
"""
import contextlib
import inspect
import linecache

import numpy as np

from labkit import arrays, graph as graphs
from labkit.backend import cudart
from labkit.cases import parts
from labkit.errors import LabError, ok

SUCCESS = cudart.cudaError_t.cudaSuccess
_MODES = cudart.cudaStreamCaptureMode


class Trouble(Exception):
    """What a program still does wrong: .text, lines to print; .code, CUDA's, or None."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.text, self.code = text, code


def named(code):
    """A code as number and name."""
    return f"{int(code)} {code.name}"


def some(values):
    """The first few values as a learner reads them."""
    values = np.asarray(values).reshape(-1)
    return " ".join(f"{v:.4g}" for v in values[:5]) + (" ..." if values.size > 5 else "")


class Bench:
    """One run: `size` floats a buffer, random whole numbers from `seed`. Use it in a with block.

    follow: None, or labkit.watch, which then follows each run of the program.
    """

    def __init__(self, size, seed=0, follow=None):
        self.size, self.random, self.what = size, np.random.default_rng(seed), f"With {size} floats"
        self._streams, self._events, self._buffers, self._execs, self._graphs, self.kept = [], [], [], [], [], []
        self.follow, self.ran = follow, False

    def __enter__(self):
        try:
            self.stream = self.new_stream()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, value, traceback):
        self.close()
        return False

    # ---- what a program gets ----

    def new_stream(self):
        stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
        self._streams.append(stream)
        return stream

    def event(self):
        event = ok(cudart.cudaEventCreate())
        self._events.append(event)
        return event

    def numbers(self, size=None):
        """Random whole numbers from 1 to 9, as float32."""
        return self.random.integers(1, 10, size or self.size).astype(np.float32)

    def buffer(self, values=None, dtype=np.float32):
        """A device buffer, with random numbers unless told otherwise."""
        made = arrays.to_device(np.asarray(self.numbers() if values is None else values, dtype))
        self._buffers.append(made)
        return made

    def fresh(self, *buffers):
        """New random numbers in each buffer: a list of what they hold now."""
        made = [self.numbers(b.size) for b in buffers]
        for buffer, values in zip(buffers, made):
            self.put(buffer, values)
        return made

    def put(self, buffer, values):
        arrays.copy_in(buffer, np.asarray(values, buffer.dtype))
        ok(cudart.cudaDeviceSynchronize())

    # ---- running it ----

    def run(self, program, *args, again=False):
        """What program(*args) returned; Trouble for a code, an exception, or a capture left open. again: it is a function that the program returned."""
        self.ran, trouble, result = True, None, None
        followed = self.follow is not None and not again
        try:
            if followed:
                print(f"{self.what}:")
            with self.follow(self.stream) if followed else contextlib.nullcontext():
                result = program(*args)
        except LabError as error:
            where = _line_of(error, program)
            trouble = Trouble(f"{self.what}: {named(error.code)}{where}{self._means(error)}" if error.code is not None
                              else f"{self.what}{where}:\n  {error.did}\n  {error.means}", error.code)
        except Exception as error:
            trouble = Trouble(f"{self.what}: {type(error).__name__}: {error}{_line_of(error, program)}{self._perhaps(error)}")
        if trouble is not None:                         # raised here: the exception and its frames hold what the program made
            raise trouble
        self.kept.append(result)
        if self.end_captures():
            raise Trouble(f"{self.what}: the program returned, and left a capture open.")
        ok(cudart.cudaDeviceSynchronize())              # what it queued, a warm-up say, is over before the next numbers come
        return result

    def _means(self, error):
        """What is said beside the code of a LabError: nothing in a case, whose code is the riddle."""
        return ""

    def _perhaps(self, error):
        """What is said beside another exception."""
        return ""

    def end_captures(self):
        """End every capture that is open on the streams of this run: how many."""
        ended = 0
        for stream in self._streams:
            code, status = cudart.cudaStreamIsCapturing(stream)
            if not int(code) and int(status):
                code, graph = cudart.cudaStreamEndCapture(stream)
                if not int(code):
                    cudart.cudaGraphDestroy(graph)
                ended += 1
        cudart.cudaThreadExchangeStreamCaptureMode(_MODES.cudaStreamCaptureModeGlobal)
        cudart.cudaGetLastError()
        return ended

    def parts_of(self, result, *wanted):
        """The things a program returned, checked against the contract: "graph", "executable" or "function" each. More may follow."""
        given = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        self.take_over(given)
        types = {"graph": cudart.cudaGraph_t, "executable": cudart.cudaGraphExec_t}
        fits = len(given) >= len(wanted) and all(isinstance(one, types[word]) and int(one) if word in types else callable(one) for one, word in zip(given, wanted))
        if not fits:
            found = ", ".join("None" if one is None else type(one).__name__ for one in given)
            raise Trouble(f"{self.what}: expected back: {', '.join(wanted)}; found: {found}.")
        return given[:len(wanted)] if len(wanted) > 1 else given[0]

    def take_over(self, given):
        """Graphs and executables among these are destroyed with this run."""
        for one in given:
            mine = self._graphs if isinstance(one, cudart.cudaGraph_t) else self._execs if isinstance(one, cudart.cudaGraphExec_t) else None
            if mine is not None and int(one) and all(int(one) != int(other) for other in mine):
                mine.append(one)

    def executable(self, graph):
        """The graph instantiated; Trouble with the code where CUDA refuses."""
        code, made = cudart.cudaGraphInstantiate(graph, 0)
        if int(code):
            raise Trouble(f"{self.what}: instantiating the graph answers {named(code)}.", code)
        self._execs.append(made)
        return made

    def launch(self, executable, which=1):
        """Launch and wait. which: the how-manieth launch it is."""
        for code in (cudart.cudaGraphLaunch(executable, self.stream)[0], cudart.cudaStreamSynchronize(self.stream)[0]):
            if int(code):
                raise Trouble(f"{self.what}: launch {which} answers {named(code)}.", code)
        ok(cudart.cudaDeviceSynchronize())
        for error in parts.raised_in_host_nodes():
            raise Trouble(f"{self.what}: the function in the host node raised {type(error).__name__}: {str(error).splitlines()[0]}")

    def expect(self, when, name, found, expected):
        """Trouble unless these are the values."""
        found = arrays.to_host(found) if isinstance(found, arrays.DeviceArray) else np.asarray(found)
        expected = np.asarray(expected)
        if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-4, atol=1e-4):
            first, start = _from(found, expected)
            raise Trouble(f"{self.what}, {when}:\n  expected {name}{first} = {some(expected.reshape(-1)[start:])}\n  found    {name}{first} = {some(found.reshape(-1)[start:])}")

    def expect_kinds(self, graph, **least):
        """Trouble unless the graph has at least so many nodes of each kind."""
        kinds = graphs.kinds(graph)
        for kind, count in least.items():
            if kinds.count(kind) < count:
                raise Trouble(f"{self.what}: expected in the graph: {count} {kind} node{'s' * (count != 1)}; found: {', '.join(kinds) or 'no nodes'}.")

    # ---- taking it down ----

    def close(self):
        """End captures, wait, destroy and free. Codes do not matter any more: a broken program may have left anything."""
        with contextlib.suppress(LabError):
            self.end_captures()
        with contextlib.suppress(LabError):
            cudart.cudaDeviceSynchronize()
        for made in self._execs:
            with contextlib.suppress(LabError):
                cudart.cudaGraphExecDestroy(made)
        for graph in self._graphs:
            with contextlib.suppress(LabError):
                for address in _left(graph):
                    cudart.cudaFree(address)
                cudart.cudaGraphDestroy(graph)
        parts.tidy()
        self.kept.clear()
        for buffer in self._buffers:
            with contextlib.suppress(LabError):         # the program may have freed it
                buffer.free()
        for event in self._events:
            cudart.cudaEventDestroy(event)
        for stream in self._streams:
            cudart.cudaStreamDestroy(stream)
        cudart.cudaDeviceGraphMemTrim(0)
        cudart.cudaGetLastError()


def _left(graph):
    """Addresses that a graph allocates and does not free."""
    nodes = [(graphs.kind(node), node) for node in graphs.nodes(graph)]
    freed = {int(ok(cudart.cudaGraphMemFreeNodeGetParams(node))) for kind, node in nodes if kind == "MemFree"}
    made = [int(ok(cudart.cudaGraphMemAllocNodeGetParams(node)).dptr) for kind, node in nodes if kind == "MemAlloc"]
    return [address for address in made if address not in freed]


def _from(found, expected):
    """(" from element 600 on", 600): where values are to be shown from, so that a difference is among them; ("", 0) for the first five."""
    if found.shape != expected.shape:
        return "", 0
    first = int(np.argmax(~np.isclose(found, expected, rtol=1e-4, atol=1e-4).reshape(-1)))
    return ("", 0) if first < 5 else (f" from element {first} on", first)


def _line_of(error, program):
    """ at "the line of the program that raised", or "" where it was not there."""
    code, found = getattr(inspect.unwrap(program), "__code__", None), ""
    step = error.__traceback__
    while step is not None:
        if code is not None and step.tb_frame.f_code.co_filename == code.co_filename:
            found = linecache.getline(code.co_filename, step.tb_lineno).split("  #")[0].strip()
        step = step.tb_next
    return f"  at  {found}" if found else ""
