"""What a conformance scenario is, and the tape that writes down what happens in it.

A scenario is a function over a `Tape`. The tape passes every call on to a cudart module (the real
`cuda.bindings.runtime` or `labkit.sim.runtime`) and appends what came back: the call, its code, and
the kind of each value, never an address, a handle or a time. `run(cudart, key)` returns that trace.
"""
import ctypes
import itertools
import queue
import threading
from dataclasses import dataclass, field

import numpy as np

from labkit import graph as graphs
from labkit import kernels

MODES = ("Global", "ThreadLocal", "Relaxed")
CHAPTERS = ("capture_begin_end", "capture_modes", "fork_join", "events", "memory", "copies", "launch",
            "graphs", "executable", "host_functions", "handles",
            "node_updates", "node_kinds", "event_and_child_updates", "known_nodes", "prepared_parameters", "update_order", "enabled",
            "graph_setters", "whole_update", "whole_update_shapes", "after_update", "memory_updates",
            "graph_memory", "graph_memory_places", "shared_pages", "memory_nodes", "memory_across_graphs", "auto_free", "frees_that_wait", "pools", "pool_places", "pool_ends",
            "current_pool", "memory_bad_input", "freed_memory", "broken_context", "user_objects", "clinic")
SCENARIOS = {}
PATIENCE = 10.0  # seconds that a step in another thread may take


@dataclass
class Scenario:
    name: str
    rule: str
    chapter: str
    control: str
    run: object
    variants: dict
    open: bool = False
    isolated: object = False
    undefined: tuple = ()
    alone: bool = False
    cases: dict = field(default_factory=dict)


def scenario(rule, control, variants, each=None, open=False, isolated=False, undefined=(), alone=False):
    """Register a scenario: `variants` maps a name to keyword arguments, `each` crosses them with more.

    `control` names the variant (the nearest program) in which every call succeeds. `open`: the answer was
    not known when it was written, the recording decides. `isolated`: recorded in a process of its own,
    because it may crash there; a crash is part of the trace, and the simulator must raise `Undefined`. It may
    be a tuple of the variants for which that holds.
    `undefined` names variants, or single cases ("variant/case"), that CUDA leaves undefined (they crash, or answer this
    in one run and that in the next): they are not recorded, and the simulator must raise `Undefined`.
    `alone`: its isolated variants are recorded when nothing else runs, because they take what others need.
    """
    def register(function):
        name = function.__name__
        assert name not in SCENARIOS, f"two scenarios are called {name}"
        assert control in variants and len(variants) > 1, f"{name} needs a control and something else"
        found = Scenario(name, rule, function.__module__.rsplit(".", 1)[-1], control, function, variants,
                         open, isolated, tuple(undefined), alone)
        for variant, arguments in variants.items():
            crossed = each or {}
            for values in itertools.product(*crossed.values()):
                key = "/".join((name, variant, *values))
                found.cases[key] = {**arguments, **dict(zip(crossed, values))}
        SCENARIOS[name] = found
        return function
    return register


def scenarios():
    """All scenarios by name, in the order of the chapters."""
    import importlib
    for chapter in CHAPTERS:
        importlib.import_module(f"tests.conformance.{chapter}")
    return SCENARIOS


def cases():
    """Every trace there is to take: {key: (scenario, arguments)}."""
    return {key: (one, arguments) for one in scenarios().values() for key, arguments in one.cases.items()}


def is_undefined(key):
    """Whether this case has no recorded trace, because CUDA leaves it undefined."""
    one, _ = cases()[key]
    variant, *case = key.split("/")[1:]
    return variant in one.undefined or "/".join((variant, *case)) in one.undefined


def run(cudart, key, on_entry=None):
    """The trace of one case on one module, as a list of lists of text and numbers."""
    one, arguments = cases()[key]
    return run_function(cudart, lambda tape: one.run(tape, **arguments), on_entry)


def run_function(cudart, function, on_entry=None):
    """The trace of `function(tape)`; an exception ends it with ["raised", its type]."""
    if kernels.is_simulator(cudart):
        from labkit import sim
        sim.reset()
    cudart.cudaGetLastError()
    tape = Tape(cudart, on_entry)
    try:
        function(tape)
    except Exception as problem:  # whatever it is, it belongs to the trace
        tape.add("raised", type(problem).__name__)
        tape.problem = problem
    finally:
        tape.clean_up()
    return tape.trace


class Hung(Exception):
    """A step in another thread did not come back."""


class SetUpFailed(Exception):
    """A call that only prepares a scenario was refused."""


class Worker:
    """A thread with a CUDA context that does one job at a time."""

    def __init__(self, cudart):
        self.jobs = queue.Queue()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()
        self.do(lambda: cudart.cudaSetDevice(0))

    def _work(self):
        while True:
            job = self.jobs.get()
            if job is None:
                return
            function, box, done = job
            try:
                box.append((function(), None))
            except BaseException as problem:
                box.append((None, problem))
            done.set()

    def do(self, function):
        box, done = [], threading.Event()
        self.jobs.put((function, box, done))
        if not done.wait(PATIENCE):
            raise Hung
        value, problem = box[0]
        if problem is not None:
            raise problem
        return value

    def stop(self):
        self.jobs.put(None)
        self.thread.join(PATIENCE)


@dataclass
class Buffer:
    """n float32 values on the device (`host` None) or on the host (`host` the NumPy view)."""
    ptr: int
    n: int
    host: object = None

    @property
    def nbytes(self):
        return 4 * self.n


# The call that makes a thing, and the call that the clean-up gives it back with.
GIVEN_BACK_BY = {
    "cudaStreamCreate": "cudaStreamDestroy", "cudaStreamCreateWithFlags": "cudaStreamDestroy",
    "cudaStreamCreateWithPriority": "cudaStreamDestroy",
    "cudaEventCreate": "cudaEventDestroy", "cudaEventCreateWithFlags": "cudaEventDestroy",
    "cudaMalloc": "cudaFree", "cudaMallocManaged": "cudaFree",
    "cudaMallocHost": "cudaFreeHost", "cudaHostAlloc": "cudaFreeHost",
    "cudaGraphCreate": "cudaGraphDestroy", "cudaGraphClone": "cudaGraphDestroy",
    "cudaStreamEndCapture": "cudaGraphDestroy",
    "cudaGraphInstantiate": "cudaGraphExecDestroy", "cudaGraphInstantiateWithFlags": "cudaGraphExecDestroy",
    "cudaGraphInstantiateWithParams": "cudaGraphExecDestroy",
    "cudaMemPoolCreate": "cudaMemPoolDestroy",
}
ORDER = ("cudaGraphExecDestroy", "cudaGraphDestroy", "cudaFreeAsync", "cudaEventDestroy", "cudaStreamDestroy",
         "cudaFree", "cudaFreeHost", "cudaMemPoolDestroy")
STREAM_ORDERED = ("cudaMallocAsync", "cudaMallocFromPoolAsync")


class Tape:
    """Calls CUDA and writes down the answers: `tape.cudaStreamBeginCapture(stream, mode)` and so on."""

    def __init__(self, cudart, on_entry=None):
        self.raw, self.trace, self.on_entry = cudart, [], on_entry
        self.problem = None
        self.made = {}        # (call that gives it back, address) -> handle
        self.blocks = set()   # addresses of stream-ordered and graph allocations, freed or not
        self.keep = []        # host memory and callbacks that CUDA may still use
        self.workers = {}
        self._put("cudaSetDevice", 0)
        self.other = self.worker("other")
        self.spare = self.device([0] * 4)
        self.ones = self.device([1] * 4)

    # -- writing down -------------------------------------------------------------------------------

    def add(self, *entry):
        self.trace.append(list(entry))
        if self.on_entry:
            self.on_entry(list(entry))

    def note(self, label, value):
        """Write down something that the scenario worked out itself."""
        self.add("note", label, value)

    def __getattr__(self, name):
        if not name.startswith("cuda"):
            raise AttributeError(name)

        def call(*arguments):
            answer = getattr(self.raw, name)(*arguments)
            self.add(name, answer[0].name, *(shape(value) for value in answer[1:]))
            self._track(name, arguments, answer)
            return answer
        return call

    def attempt(self, name, *arguments):
        """A call that may raise in Python: the exception's type is written down and the scenario goes on."""
        try:
            return getattr(self, name)(*arguments)
        except Hung:
            raise
        except Exception as problem:
            self.add(name, "raised", type(problem).__name__)
            return None

    def status(self, stream):
        """Write down the capture status of a stream."""
        code, status = self.raw.cudaStreamIsCapturing(stream)
        self.add("status", shape(status) if code == 0 else code.name)

    def info(self, stream):
        """Write down what the capture of this stream holds so far: state, node kinds, edges, open ends."""
        state = graphs.capture_state(stream, cudart=self.raw)
        if state.status != "Active":
            self.add("capture", state.status)
            return state
        kinds, edges, places = self._canonical(state.graph)
        ends = sorted(places[int(node)] for node in state.dependencies)
        self.add("capture", state.status, kinds, edges, ends)
        return state

    def graph(self, graph):
        """Write down the node kinds and edges of a graph, in an order that the graph alone decides."""
        kinds, edges, _ = self._canonical(graph)
        self.add("graph", kinds, edges)

    def _canonical(self, graph):
        nodes = graphs.nodes(graph, cudart=self.raw)
        return canonical([int(node) for node in nodes], graphs.kinds(graph, cudart=self.raw),
                         graphs.edges(graph, cudart=self.raw))

    def values(self, buffer, stream=None):
        """Write down what a buffer holds, after waiting for `stream`."""
        values = self.peek(buffer, stream)
        if values is not None:
            self.add("values", values)

    def peek(self, buffer, stream=None):
        """What a buffer holds, after waiting for `stream`; None when CUDA refuses, which is written down."""
        if stream is not None:
            code, = self.raw.cudaStreamSynchronize(stream)
            if code != 0:
                self.add("waiting refused", code.name)
                return None
        if buffer.host is not None:
            return plain(buffer.host)
        host = np.full(buffer.n, -1, np.float32)
        code, = self.raw.cudaMemcpy(host.ctypes.data, buffer.ptr, buffer.nbytes, self.copies("DeviceToHost"))
        if code != 0:
            self.add("reading refused", code.name)
            return None
        return plain(host)

    # -- preparing: not written down, refusals end the scenario --------------------------------------

    def _put(self, name, *arguments):
        answer = getattr(self.raw, name)(*arguments)
        if answer[0] != 0:
            raise SetUpFailed(f"{name} {answer[0].name}")
        self._track(name, arguments, answer)
        return answer[1] if len(answer) == 2 else answer[1:]

    def _track(self, name, arguments, answer):
        if answer[0] != 0:
            return
        if name in STREAM_ORDERED:
            self.blocks.add(int(answer[1] or 0))
        elif name == "cudaGraphAddMemAllocNode":
            self.blocks.add(int(arguments[3].dptr))
        elif name == "cudaFreeAsync":  # it takes what cudaMalloc gave, too
            self.made.pop(("cudaFree", int(arguments[0] or 0)), None)
        elif name in GIVEN_BACK_BY and answer[1] is not None and int(answer[1]):
            self.made[GIVEN_BACK_BY[name], int(answer[1])] = answer[1]
        elif name in ORDER and arguments[0] is not None:
            self.made.pop((name, int(arguments[0])), None)

    def stream(self, kind="nonblocking"):
        """A stream: nonblocking, blocking (new ones), legacy, null, None or perthread (those that are there)."""
        if kind in ("legacy", "perthread"):
            name = {"legacy": "cudaStreamLegacy", "perthread": "cudaStreamPerThread"}[kind]
            return self.raw.cudaStream_t(getattr(self.raw, name))
        if kind in ("null", "None"):
            return 0 if kind == "null" else None
        return self._put("cudaStreamCreateWithFlags", {"blocking": 0, "nonblocking": 1}[kind])

    def event(self, flags=None):
        return self._put("cudaEventCreate") if flags is None else self._put("cudaEventCreateWithFlags", flags)

    def device(self, values):
        """A device buffer that holds `values`."""
        buffer = Buffer(self._put("cudaMalloc", 4 * len(values)), len(values))
        self.write(buffer, values)
        return buffer

    def write(self, buffer, values):
        """Put values into a buffer, from outside of all streams."""
        host = np.array(values, np.float32)
        if buffer.host is not None:
            buffer.host[:] = host
        else:
            self._put("cudaMemcpy", buffer.ptr, host.ctypes.data, host.nbytes, self.copies("HostToDevice"))
            self._put("cudaDeviceSynchronize")

    def pageable(self, values):
        host = np.array(values, np.float32)
        self.keep.append(host)
        return Buffer(host.ctypes.data, len(values), host)

    def pinned(self, values):
        ptr = self._put("cudaMallocHost", 4 * len(values))
        host = np.ctypeslib.as_array((ctypes.c_float * len(values)).from_address(ptr))
        host[:] = values
        return Buffer(ptr, len(values), host)

    def callback(self, function):
        """The address of a C function that calls `function()`; it lives as long as the process does."""
        def call(_):
            try:
                function()
            except BaseException as problem:
                self.keep.append(problem)
        made = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call)
        CALLBACKS.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value

    def receiver(self, function):
        """The address of a C function that calls `function(user data as int)`."""
        made = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: function(data or 0))
        CALLBACKS.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value

    def gate(self, stream):
        """Hold up a stream until what this returns is called, or three seconds have passed."""
        shut = threading.Event()
        self.cudaLaunchHostFunc(stream, self.raw.cudaHostFn_t(self.callback(lambda: shut.wait(3))), 0)
        return shut.set

    def u64(self, value):
        """A 64-bit value as attributes of memory pools take it: the driver module's own type, nothing else."""
        if kernels.is_simulator(self.raw):
            from labkit.sim import values
            return values.cuuint64_t(value)
        from cuda.bindings import driver
        return driver.cuuint64_t(value)

    def mode(self, name):
        return getattr(self.raw.cudaStreamCaptureMode, f"cudaStreamCaptureMode{name}")

    def copies(self, kind):
        return getattr(self.raw.cudaMemcpyKind, f"cudaMemcpy{kind}")

    # -- the calls that nearly every scenario makes ---------------------------------------------------

    def launch(self, stream, kernel, grid, block, *arguments, shared=0):
        answer = kernels.launch_on(self.raw, stream, kernel, grid, block, *arguments, shared=shared)
        self.add("launch", answer[0].name)
        return answer

    def fill(self, stream, buffer, value):
        """buffer[:] = value"""
        return self.launch(stream, kernels.fill, 1, 32, buffer.ptr, float(value), buffer.n)

    def axpy(self, stream, y, x, a):
        """y += a * x"""
        return self.launch(stream, kernels.axpy, 1, 32, y.ptr, x.ptr, float(a), y.n)

    def begin(self, stream, mode="Global"):
        return self.cudaStreamBeginCapture(stream, self.mode(mode))[0]

    def end(self, stream):
        return self.cudaStreamEndCapture(stream)[1]

    def follow(self, later, earlier, event=None):
        """Make stream `later` wait for all that stream `earlier` was given so far: a fork, or a join."""
        event = self.event() if event is None else event
        self.cudaEventRecord(event, earlier)
        self.cudaStreamWaitEvent(later, event, 0)
        return event

    def instantiate(self, graph, flags=0):
        return self.cudaGraphInstantiate(graph, flags)[1]

    def replay(self, graph, stream, times=1):
        """Instantiate and launch, so many times, and wait."""
        executable = self.instantiate(graph)
        for _ in range(times if executable is not None else 0):
            self.cudaGraphLaunch(executable, stream)
        self.cudaStreamSynchronize(stream)
        return executable

    def exec_update(self, executable, graph, ask=True):
        """cudaGraphExecUpdate, and why it was refused: the result's name, the node of `graph` at fault, the node before it.

        The bindings lose the reason, so labkit asks a second time. A refused update changes nothing, and one
        that is made twice is made once. `ask=False` where the handles are not to be touched again.
        """
        answer = self.cudaGraphExecUpdate(executable, graph)
        if ask:
            from labkit import update
            code, why = update.exec_update(executable, graph, cudart=self.raw)
            if int(code) != int(answer[0]):
                self.add("asked again", code.name)
            self.add("why", why.result, self._spot(graph, why.node), self._spot(graph, why.other))
        return answer[0]

    def _spot(self, graph, node):
        """A node of a graph as its kind and its place in the order that the graph alone decides."""
        if node is None or not int(node):
            return None
        kinds, _, places = self._canonical(graph)
        place = places.get(int(node))
        return "a node of no such graph" if place is None else f"{kinds[place]} {place}"

    def function(self, kernel):
        """The handle of a kernel that `cudaKernelNodeParams.func` takes on this module."""
        return int(kernel.func_on(self.raw))

    def kernel_params(self, kernel, grid, block, *arguments, shared=0):
        params = self.raw.cudaKernelNodeParams()
        params.func = self.function(kernel)
        for dim, size in ((params.gridDim, grid), (params.blockDim, block)):
            dim.x, dim.y, dim.z = size, 1, 1
        params.sharedMemBytes = shared
        types = [ctypes.c_void_p if one.pointer else np.ctypeslib.as_ctypes_type(one.dtype)
                 for one in kernel.params]
        values = [value if one.pointer else value.item()
                  for one, value in zip(kernel.params, kernel.pack(arguments))]
        params.kernelParams = (tuple(values), tuple(types))
        self.keep.append(params)
        return params

    def fill_params(self, buffer, value):
        return self.kernel_params(kernels.fill, 1, 32, buffer.ptr, float(value), buffer.n)

    def axpy_params(self, y, x, a):
        return self.kernel_params(kernels.axpy, 1, 32, y.ptr, x.ptr, float(a), y.n)

    def memset_params(self, buffer, value, width=None, element=4):
        params = self.raw.cudaMemsetParams()
        params.dst, params.value, params.elementSize = buffer.ptr, value, element
        params.width, params.height, params.pitch = (buffer.n if width is None else width), 1, 0
        return params

    def alloc_params(self, nbytes):
        params = self.raw.cudaMemAllocNodeParams()
        params.poolProps.allocType = self.raw.cudaMemAllocationType.cudaMemAllocationTypePinned
        params.poolProps.location.type = self.raw.cudaMemLocationType.cudaMemLocationTypeDevice
        params.poolProps.location.id = 0
        params.bytesize = nbytes
        return params

    # -- calls that take edge data on 13.x and not on 12.9 -----------------------------------------------

    def _edge_data(self):
        return (None,) if self.raw.cudaRuntimeGetVersion()[1] >= 13000 else ()

    def update_dependencies(self, stream, nodes, flag, count=None):
        """flag 0 adds nodes to what the stream's next node follows, 1 sets them."""
        return self.cudaStreamUpdateCaptureDependencies(
            stream, nodes, *self._edge_data(), len(nodes) if count is None else count, flag)

    def add_edges(self, graph, from_, to):
        return self.cudaGraphAddDependencies(graph, from_, to, *self._edge_data(), len(from_))

    def remove_edges(self, graph, from_, to):
        return self.cudaGraphRemoveDependencies(graph, from_, to, *self._edge_data(), len(from_))

    def begin_to_graph(self, stream, graph, nodes=(), mode="Global"):
        return self.cudaStreamBeginCaptureToGraph(stream, graph, list(nodes), None, len(nodes), self.mode(mode))

    # -- other threads ---------------------------------------------------------------------------------

    def worker(self, name):
        if name not in self.workers:
            self.workers[name] = Worker(self.raw)
        return self.workers[name]

    def thread(self, function, name="other"):
        """Run `function()` in another thread and wait for it."""
        return self.worker(name).do(function)

    def here_or_there(self, thread, function):
        """Run `function()` in this thread ("same") or in another ("other")."""
        return function() if thread == "same" else self.thread(function)

    # -- the end -----------------------------------------------------------------------------------------

    def recovered(self, stream=None):
        """Prove that all is well again: capture two kernels, instantiate, launch, and read 5 from memory."""
        self.add("recovered", self._recover(stream))

    def _recover(self, stream):
        raw = self.raw
        raw.cudaThreadExchangeStreamCaptureMode(self.mode("Global"))
        try:
            stream = self.stream() if stream is None else stream
            self._check("begin", raw.cudaStreamBeginCapture(stream, self.mode("Global")))
            one = kernels.launch_on(raw, stream, kernels.fill, 1, 32, self.spare.ptr, 3.0, 4)
            two = kernels.launch_on(raw, stream, kernels.axpy, 1, 32, self.spare.ptr, self.ones.ptr, 2.0, 4)
            graph = self._check("end", raw.cudaStreamEndCapture(stream))
            self.made["cudaGraphDestroy", int(graph)] = graph
            self._check("launch", one), self._check("launch", two)
            executable = self._check("instantiate", raw.cudaGraphInstantiate(graph, 0))
            self.made["cudaGraphExecDestroy", int(executable)] = executable
            self._check("replay", raw.cudaGraphLaunch(executable, stream))
            self._check("wait", raw.cudaStreamSynchronize(stream))
        except SetUpFailed as refused:
            return str(refused)
        return self.peek(self.spare)

    @staticmethod
    def _check(step, answer):
        if answer[0] != 0:
            raise SetUpFailed(f"{step}: {answer[0].name}")
        return answer[1] if len(answer) > 1 else None

    def clean_up(self):
        """Give back all that the scenario made, end captures that it left open, restore thread modes."""
        raw = self.raw
        def quietly(name, *arguments):
            try:
                return getattr(raw, name)(*arguments)
            except Exception:
                return (-1, None)
        def end_what_is_open():
            quietly("cudaThreadExchangeStreamCaptureMode", self.mode("Global"))
            streams = [handle for (gone, _), handle in self.made.items() if gone == "cudaStreamDestroy"]
            for stream in [*streams, self.stream("perthread")]:
                code, status = quietly("cudaStreamIsCapturing", stream)
                if code == 0 and int(status):
                    _, graph = quietly("cudaStreamEndCapture", stream)
                    if graph is not None and int(graph):
                        self.made["cudaGraphDestroy", int(graph)] = graph
        for where in [lambda job: job(), *(worker.do for worker in self.workers.values())] * 2:
            try:
                where(end_what_is_open)
            except Hung:
                self.add("hung")
        quietly("cudaDeviceSynchronize")
        for gone in ORDER:
            if gone == "cudaFreeAsync":  # what a launch left allocated is freed here; all else is refused
                for ptr in self.blocks - {0}:
                    quietly("cudaFreeAsync", ptr, 0)
                quietly("cudaDeviceSynchronize")
            for (call, _), handle in list(self.made.items()):
                if call == gone:
                    quietly(call, handle)
        quietly("cudaDeviceGraphMemTrim", 0)
        for worker in self.workers.values():
            worker.stop()
        quietly("cudaGetLastError")


CALLBACKS = []  # ctypes callbacks are never given back: an executable may call them at any time


def plain(array):
    """A NumPy array as numbers that JSON keeps: 2.0 becomes 2."""
    return [int(value) if float(value).is_integer() else float(value) for value in array]


def shape(value):
    """What kind of thing a call returned: an enum's name, a handle or null, never an address."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int) and hasattr(value, "name"):
        return value.name.removeprefix(type(value).__name__)
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} values"
    if type(value).__name__ == "cuuint64_t":
        return "uint64"
    if type(value).__name__.endswith("_t"):
        return "handle" if int(value) else "null"
    return type(value).__name__


def canonical(nodes, kinds, edges):
    """(kinds, edges, {node: place}) of a graph in an order that does not depend on how it was listed.

    Nodes are sorted by depth, then by the shape of the graph around them; of the orders that this leaves
    open (equals among equals) the one with the smallest list of edges is taken.
    """
    count = len(nodes)
    before = [[] for _ in range(count)]
    after = [[] for _ in range(count)]
    for start, stop in edges:
        before[stop].append(start)
        after[start].append(stop)
    depth = [0] * count
    for _ in range(count):
        deeper = [max((depth[one] + 1 for one in before[node]), default=0) for node in range(count)]
        if deeper == depth:
            break
        depth = deeper
    colour = [(min(depth[node], count), kinds[node]) for node in range(count)]
    for _ in range(count):
        finer = [(colour[node], sorted(colour[one] for one in before[node]),
                  sorted(colour[one] for one in after[node])) for node in range(count)]
        ranks = {repr(one): rank for rank, one in enumerate(sorted(finer, key=lambda one: repr(one)))}
        renamed = [(depth[node], kinds[node], ranks[repr(finer[node])]) for node in range(count)]
        if renamed == colour:
            break
        colour = renamed
    classes = [list(group) for _, group in itertools.groupby(
        sorted(range(count), key=lambda node: colour[node]), key=lambda node: colour[node])]
    best = None
    orders = itertools.product(*(itertools.permutations(group) for group in classes))
    for order in itertools.islice(orders, 2000):
        order = [node for group in order for node in group]
        place = {node: spot for spot, node in enumerate(order)}
        found = sorted([place[start], place[stop]] for start, stop in edges)
        if best is None or found < best[0]:
            best = found, order, place
    found, order, place = best or ([], [], {})
    return [kinds[node] for node in order], found, {nodes[node]: spot for node, spot in place.items()}
