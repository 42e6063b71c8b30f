"""Random programs: small sequences of calls, run on the GPU and on the simulator, which must agree.

A program is a list of operations such as ["begin", 0, 1, "Global"]: name, thread, stream and the rest.
Three streams of their own (one of them blocking) and the legacy stream, three events, two threads.
Nothing in a program is undefined: every operation writes a place of its own in memory and reads only what
is ordered before it, no destroyed handle is used, and memory is read after everything has finished. A graph
and its clones work in places of their own, so all executables that do their work share one stream.
"""
import json
import random
import time
from dataclasses import dataclass

from labkit import graph as graphs
from labkit import kernels, update
from tests.conformance import children, random_memory
from tests.conformance.harness import MODES, Hung, canonical, run_function

STREAMS, EVENTS, THREADS, LONGEST = 3, 3, 2, 40
LEGACY = STREAMS
SHRUNK = 3       # of the differing programs of one job, so many are shrunk; it takes time on the GPU
CHANGES = ("update node", "update node", "exec update", "exec update", "enable", "clone", "set node")
BREAKS = {"begin", "end", "wait", "dependencies", "launch graph"}  # after these nothing earlier is surely ordered


# -- making programs ------------------------------------------------------------------------------------------


def program(rng, length=None):
    """A random program, one in five about memory. `rng` is a random.Random, or what Hypothesis gives for one."""
    if length is None and rng.random() < 0.2:
        return random_memory.program(rng)
    ops = []
    capturing, joined = {}, set()  # what the program probably has under way: stream -> its origin

    def thread():
        return 1 if rng.random() < 0.12 else 0

    def any_stream():
        return rng.randrange(STREAMS + 1) if rng.random() < 0.15 else rng.randrange(STREAMS)

    def add(name, *rest, by=None):
        ops.append([name, thread() if by is None else by, *rest])
    for _ in range(length or rng.randrange(6, LONGEST - 10)):
        if len(ops) >= LONGEST:
            break
        dice = rng.random()
        free = [stream for stream in range(STREAMS) if stream not in capturing]
        busy = list(capturing)
        if dice < 0.14 and free:
            stream = rng.choice(free)
            capturing[stream] = stream
            if rng.random() < 0.3:
                del capturing[stream]
                _small_graph(rng, add, stream)
                continue
            add("begin", stream, rng.choice(MODES), by=1 if rng.random() < 0.05 else 0)
        elif dice < 0.40:
            add("launch", rng.choice(busy) if busy and rng.random() < 0.85 else any_stream())
        elif dice < 0.50 and busy:
            earlier, later = rng.choice(busy), rng.randrange(STREAMS)
            if later != earlier:
                add("follow", later, earlier)
                capturing.setdefault(later, capturing[earlier])
                joined.add(earlier)
        elif dice < 0.60 and busy:
            origin = rng.choice(busy)
            origin = capturing[origin]
            if rng.random() < 0.85:
                for other in busy:
                    if other != origin and capturing[other] == origin:
                        add("follow", origin, other)
            add("end", origin, by=1 if rng.random() < 0.05 else 0)
            for other in busy:
                if capturing.get(other) == origin:
                    del capturing[other]
            if rng.random() < 0.6:
                add("instantiate", rng.randrange(4))
                add("launch graph", rng.randrange(4))
            if rng.random() < 0.6:
                _changes(rng, add)
        elif dice < 0.62 and any(name == "end" for name, *_ in ops):
            _changes(rng, add)
        elif dice < 0.66:
            add(rng.choice(("memset", "copy")), rng.choice(busy) if busy and rng.random() < 0.8 else any_stream())
        elif dice < 0.70:
            add("instantiate", rng.randrange(4))
        elif dice < 0.76:
            add("launch graph", rng.randrange(4))
        elif dice < 0.82:
            add("info", rng.randrange(STREAMS))
        else:
            _anything(rng, add, any_stream)
    return ops[:LONGEST]


def _small_graph(rng, add, stream):
    """A short capture, an executable of it, and changes: graphs of few shapes, so that updates often fit."""
    add("begin", stream, rng.choice(MODES), by=0)
    for name in rng.choice((("launch",), ("launch", "launch"), ("launch", "memset"), ("memset", "launch"))):
        add(name, stream, by=0)
    add("end", stream, by=0)
    add("instantiate", rng.randrange(4))
    _changes(rng, add)


def _changes(rng, add):
    """Some changes of graphs and executables, and launches that show them."""
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(CHANGES)
        rest = {"update node": (4, 4, 6), "set node": (4, 6), "enable": (4, 6), "exec update": (4, 4), "clone": (4,)}[name]
        value = {"enable": [int(rng.random() < 0.3)], "update node": [rng.randrange(2, 5)], "set node": [rng.randrange(2, 5)]}.get(name, [])
        add(name, *[rng.randrange(size) for size in rest], *value)
        if rng.random() < 0.6:
            add("launch graph", rng.randrange(4))


def _anything(rng, add, any_stream):
    name = rng.choice(("record", "record", "wait", "wait", "query", "synchronize", "query event", "wait for event", "malloc", "free",
                       "copy now", "status", "mode", "synchronize device", "begin", "end", "allocate", "free async", "dependencies",
                       "bad launch", "destroy executable", "destroy graph", "upload", "malloc host"))
    if name in ("record", "wait"):
        add(name, any_stream(), rng.randrange(EVENTS), int(rng.random() < 0.15))
    elif name in ("query", "synchronize", "status", "allocate", "dependencies", "bad launch", "end"):
        add(name, any_stream())
    elif name in ("query event", "wait for event"):
        add(name, rng.randrange(EVENTS))
    elif name == "mode":
        add(name, rng.choice(MODES))
    elif name == "begin":
        add(name, any_stream(), rng.choice(MODES))
    elif name == "free async":
        add(name, any_stream(), rng.randrange(3))
    elif name in ("destroy executable", "destroy graph", "upload"):
        add(name, rng.randrange(4))
    else:
        add(name)


def sources(ops):
    """For each operation the number of the launch that it may read: ordered before it, whatever happens."""
    last, found = [None] * (STREAMS + 1), []
    for number, (name, _, *rest) in enumerate(ops):
        found.append(last[rest[0]] if name == "launch" else None)
        if name in BREAKS:
            last = [None] * (STREAMS + 1)
        elif name == "follow":
            last[rest[0]] = last[rest[1]]
        elif name == "launch":
            last[rest[0]] = number
    return found


# -- running them -----------------------------------------------------------------------------------------------


def run(cudart, ops):
    """The answers of a program on one module: a code a step, with graphs and states, then the memory."""
    answers = []
    trace = run_function(cudart, lambda tape: _Run(tape, ops, answers).all())
    problems = [entry for entry in trace if entry[0] in ("raised", "hung")]
    return answers + problems


@dataclass(eq=False)
class _Graph:
    """A graph that a program made. family: one number for it and its clones; stream: where they are launched; places: what a random
    program about memory allocates in it."""
    handle: object
    family: int
    stream: int
    places: tuple = ()


@dataclass(eq=False)
class _Executable:
    """An executable. origin: the graph it was made from; does: the graph whose work it does now; changed: by more than instantiating."""
    handle: object
    origin: _Graph
    does: _Graph
    changed: bool = False

    @property
    def stream(self):
        return self.does.stream


class _Run(random_memory.Steps):
    """One program on one tape."""

    def __init__(self, tape, ops, answers):
        self.t, self.ops, self.answers, self.raw = tape, ops, answers, tape.raw
        kinds = ("nonblocking", "blocking", "nonblocking")
        self.streams = [tape.stream(kind) for kind in kinds] + [tape.stream("legacy")]
        self.events = [tape.event() for _ in range(EVENTS)]
        self.joints = [tape.event() for name, *_ in ops if name == "follow"]
        self.memory = tape.device([0] * LONGEST)
        self.given = [tape.device([0] * 4).ptr for name, *_ in ops if name == "free"]
        self.graphs, self.executables, self.blocks, self.owner = [], [], [], {}
        self.families = 0
        self.reads = sources(ops)

    def all(self):
        for number, (name, thread, *rest) in enumerate(self.ops):
            step = getattr(self, name.replace(" ", "_"))
            self.answers.append(self.by(thread, lambda: step(number, thread, *rest)))
        self.finish()

    def by(self, thread, function):
        return function() if thread == 0 else self.t.thread(function)

    def call(self, name, *arguments):
        answer = getattr(self.raw, name)(*arguments)
        self.t._track(name, arguments, answer)
        return answer

    def code(self, name, *arguments):
        code = int(self.call(name, *arguments)[0])
        return 0 if code == 600 else code  # NotReady: whether work is done already is no rule

    def place(self, number):
        return self.memory.ptr + 4 * number

    def look(self, graph):
        nodes = [int(node) for node in graphs.nodes(graph, cudart=self.raw)]
        return canonical(nodes, graphs.kinds(graph, cudart=self.raw), graphs.edges(graph, cudart=self.raw))

    # -- the operations: (number, thread, the rest) -> what to write down --

    def begin(self, number, thread, stream, mode):
        code = self.code("cudaStreamBeginCapture", self.streams[stream], self.t.mode(mode))
        if code == 0:
            self.owner[stream] = thread
        return code

    def end(self, number, thread, stream):
        code, graph = self.call("cudaStreamEndCapture", self.streams[stream])
        if graph is None or not int(graph):
            return int(code)
        self.add_graph(graph, len(self.graphs) % STREAMS)
        return [int(code), *self.look(graph)[:2]]

    def add_graph(self, graph, stream, places=()):
        self.families += 1
        self.graphs.append(_Graph(graph, self.families, stream, places))

    def launch(self, number, thread, stream):
        read = self.reads[number]
        source = self.t.ones.ptr if read is None else self.place(read)
        first, = kernels.launch_on(self.raw, self.streams[stream], kernels.axpy, 1, 1, self.place(number), source, 1.0, 1)
        if read is None:
            return int(first)
        second, = kernels.launch_on(self.raw, self.streams[stream], kernels.axpy, 1, 1, self.place(number), self.t.ones.ptr, 1.0, 1)
        return [int(first), int(second)]

    def bad_launch(self, number, thread, stream):
        code, = kernels.launch_on(self.raw, self.streams[stream], kernels.fill, 1, 4096, self.place(number), 1.0, 1)
        return int(code)

    def follow(self, number, thread, later, earlier):
        event = self.joints[sum(name == "follow" for name, *_ in self.ops[:number])]
        return [self.code("cudaEventRecord", event, self.streams[earlier]),
                self.code("cudaStreamWaitEvent", self.streams[later], event, 0)]

    def record(self, number, thread, stream, event, flags):
        return self.code("cudaEventRecordWithFlags", self.events[event], self.streams[stream], flags)

    def wait(self, number, thread, stream, event, flags):
        return self.code("cudaStreamWaitEvent", self.streams[stream], self.events[event], flags)

    def query(self, number, thread, stream):
        return self.code("cudaStreamQuery", self.streams[stream])

    def synchronize(self, number, thread, stream):
        return self.code("cudaStreamSynchronize", self.streams[stream])

    def query_event(self, number, thread, event):
        return self.code("cudaEventQuery", self.events[event])

    def wait_for_event(self, number, thread, event):
        return self.code("cudaEventSynchronize", self.events[event])

    def malloc(self, number, thread):
        return self.code("cudaMalloc", 64)

    def malloc_host(self, number, thread):
        return self.code("cudaMallocHost", 64)

    def free(self, number, thread):
        return self.code("cudaFree", self.given.pop()) if self.given else "none"

    def memset(self, number, thread, stream):
        return self.code("cudaMemsetAsync", self.place(number), 63, 4, self.streams[stream])

    def copy(self, number, thread, stream):
        return self.code("cudaMemcpyAsync", self.place(number), self.t.ones.ptr, 4, self.t.copies("DeviceToDevice"), self.streams[stream])

    def copy_now(self, number, thread):
        return self.code("cudaMemcpy", self.place(number), self.t.ones.ptr, 4, self.t.copies("DeviceToDevice"))

    def status(self, number, thread, stream):
        code, status = self.call("cudaStreamIsCapturing", self.streams[stream])
        return [int(code), None if status is None else int(status)]

    def info(self, number, thread, stream):
        state = graphs.capture_state(self.streams[stream], cudart=self.raw)
        if state.status != "Active":
            return state.status
        kinds, edges, places = self.look(state.graph)
        return [kinds, edges, sorted(places[int(node)] for node in state.dependencies)]

    def mode(self, number, thread, mode):
        code, before = self.call("cudaThreadExchangeStreamCaptureMode", self.t.mode(mode))
        return [int(code), int(before)]

    def synchronize_device(self, number, thread):
        return self.code("cudaDeviceSynchronize")

    def dependencies(self, number, thread, stream):
        return int(self.raw.cudaStreamUpdateCaptureDependencies(self.streams[stream], [], *self.t._edge_data(), 0, 1)[0])

    def allocate(self, number, thread, stream):
        code, ptr = self.call("cudaMallocAsync", 64, self.streams[stream])
        if code == 0:
            self.blocks.append(int(ptr))
        return int(code)

    def free_async(self, number, thread, stream, block):
        if not self.blocks:
            return "none"
        block %= len(self.blocks)
        return self.code("cudaFreeAsync", self.blocks.pop(block), self.streams[stream])

    def some(self, row, which):
        return row[which % len(row)] if row else None

    def instantiate(self, number, thread, which, flags=0):
        graph = self.some(self.graphs, which)
        if graph is None:
            return "none"
        code, executable = self.call("cudaGraphInstantiate", graph.handle, flags)
        if code == 0:
            self.executables.append(_Executable(executable, graph, graph))
        return int(code)

    def launch_graph(self, number, thread, which):
        one = self.some(self.executables, which)
        return self.code("cudaGraphLaunch", one.handle, self.streams[one.stream]) if one else "none"

    def upload(self, number, thread, which):
        one = self.some(self.executables, which)
        return self.code("cudaGraphUpload", one.handle, self.streams[one.stream]) if one else "none"

    def destroy_executable(self, number, thread, which):
        one = self.some(self.executables, which)
        freed = self.free_places(one.origin) if one else []       # a graph that is made again while its memory is held may crash
        code = self.destroy(self.executables, "cudaGraphExecDestroy", which)
        return [*freed, code] if freed else code

    def destroy_graph(self, number, thread, which):
        return self.destroy(self.graphs, "cudaGraphDestroy", which)

    def destroy(self, row, call, which):
        if not row:
            return "none"
        which %= len(row)
        code = self.code(call, row[which].handle)
        if code == 0:
            row.pop(which)
        return code

    # -- changes: kernel nodes are told apart by the place they write, which no listing order decides --

    def kernel_node(self, graph, which):
        """(node, what it was launched with) of one kernel node of a graph, or None."""
        found = [(node, update.launched(node, cudart=self.raw)) for node in graphs.nodes(graph.handle, cudart=self.raw)
                 if graphs.kind(node, cudart=self.raw) == "Kernel"]
        found.sort(key=lambda one: (one[1].args[0], one[1].args[1] == self.t.ones.ptr))
        return self.some(found, which)

    def clone(self, number, thread, which):
        graph = self.some(self.graphs, which)
        if graph is None:
            return "none"
        code, clone = self.call("cudaGraphClone", graph.handle)
        if code == 0:
            self.graphs.append(_Graph(clone, graph.family, graph.stream))
        return int(code)

    def set_node(self, number, thread, which, node, value):
        graph = self.some(self.graphs, which)
        found = self.kernel_node(graph, node) if graph else None
        return self.code("cudaGraphKernelNodeSetParams", found[0], found[1].but(args={2: float(value)})) if found else "none"

    def update_node(self, number, thread, which, of, node, value):
        """A node of the executable's own graph (mostly), or of another graph, gets another factor."""
        one, graph = self.some(self.executables, which), self.some(self.graphs, of)
        if one is None or graph is None or graph.family != one.does.family and one.changed:
            return "none"
        found = self.kernel_node(graph, node)
        if found is None:
            return "none"
        code = self.code("cudaGraphExecKernelNodeSetParams", one.handle, found[0], found[1].but(args={2: float(value)}))
        one.changed = one.changed or code == 0
        return code

    def enable(self, number, thread, which, node, on):
        one = self.some(self.executables, which)
        found = self.kernel_node(one.origin, node) if one and one.origin in self.graphs else None
        if found is None:
            return "none"
        code = self.code("cudaGraphNodeSetEnabled", one.handle, found[0], on)
        one.changed = one.changed or code == 0
        return [code, *map(int, self.raw.cudaGraphNodeGetEnabled(one.handle, found[0])[1:])]

    def exec_update(self, number, thread, which, source):
        """From any graph: with memory nodes it is left out."""
        one, graph = self.some(self.executables, which), self.some(self.graphs, source)
        if one is None or graph is None or {"MemAlloc", "MemFree"} & set(graphs.kinds(graph.handle, cudart=self.raw)):
            return "none"
        code = self.code("cudaGraphExecUpdate", one.handle, graph.handle)
        if code == 0:
            one.does, one.changed = graph, True
        return code if code not in (0, 910) else [code, update.exec_update(one.handle, graph.handle, cudart=self.raw)[1].result]

    def finish(self):
        """End what is open, launch every graph once more, wait, and read all places."""
        for thread in range(THREADS):
            self.by(thread, lambda: self.raw.cudaThreadExchangeStreamCaptureMode(self.t.mode("Global")))
        for stream in range(STREAMS):
            code, status = self.raw.cudaStreamIsCapturing(self.streams[stream])
            self.answers.append(["left", int(code), None if status is None else int(status)])
            if code == 0 and int(status) and stream in self.owner:
                self.answers.append(self.by(self.owner[stream], lambda: self.end(0, 0, stream)))
        for number in range(len(self.graphs)):
            code = self.instantiate(0, 0, number)
            self.answers.append([code, self.launch_graph(0, 0, len(self.executables) - 1) if code == 0 else None])
        for which, one in enumerate(self.executables):
            if one.changed:
                self.answers.append(self.launch_graph(0, 0, which))
        self.answers.append(self.code("cudaDeviceSynchronize"))
        self.answers.append(self.t.peek(self.memory))


def shrink(ops, differs, tries=200):
    """The smallest program found by leaving out operations for which `differs(ops)` still holds."""
    size = max(len(ops) // 2, 1)
    while True:
        start = 0
        while start < len(ops):
            fewer = ops[:start] + ops[start + size:]
            tries -= 1
            if tries < 0:
                return ops
            if fewer and differs(fewer):
                ops = fewer
            else:
                start += size
        if size == 1:
            return ops
        size = max(size // 2, 1)


# -- recording ----------------------------------------------------------------------------------------------------


def job(cudart, key, on_entry):
    """Programs of a range of seeds ("first-last"), in a child on the GPU, compared there with the simulator."""
    first, last = map(int, key.split("-"))
    from labkit.sim import runtime as simulated
    from labkit import sim
    sim.set_line(cudart.cudaRuntimeGetVersion()[1] // 1000)
    shrunk = 0
    for seed in range(first, last):
        ops = program(random.Random(seed))
        on_entry(["running", seed])
        recorded, found = settled(run(cudart, ops)), settled(run(simulated, ops))
        on_entry(["answers", seed, ops, recorded])
        if recorded != found:
            shrunk += 1
            if shrunk <= SHRUNK:
                ops = shrink(ops, lambda fewer: settled(run(cudart, fewer)) != settled(run(simulated, fewer)))
            on_entry(["different", seed, ops, settled(run(cudart, ops)), settled(run(simulated, ops))])
        ill = children.illness(cudart)
        if ill:
            on_entry(["ill", seed, ill])
            return


def settled(answers):
    """Answers as JSON gives them back."""
    return json.loads(json.dumps(answers))


def record(args, line, where):
    """Run N random programs, keep the first of them with the GPU's answers, print the differences, shrunk."""
    from tests.conformance import store
    start, seeds, step = time.monotonic(), range(args.first_seed, args.first_seed + args.random), 25
    keys = [f"{first}-{min(first + step, seeds.stop)}" for first in range(seeds.start, seeds.stop, step)]
    found = children.run_spread("tests.conformance.random_programs:job", args.module, line, keys, args.jobs)
    entries = [entry for key in keys for entry in found.get(key, [])]
    kept = {str(seed): [pack(ops), answers] for kind, seed, ops, answers in
            (entry for entry in entries if entry[0] == "answers") if seed < seeds.start + args.keep}
    store.write(args.out / f"random_{line}.json", where, kept)
    different = [entry for entry in entries if entry[0] == "different"]
    different.sort(key=lambda entry: len(entry[2]))
    for _, seed, ops, recorded, simulated in different[:60]:
        print(f"DIFFERENT program {seed}: {pack(ops)}\n    gpu {recorded[:-1]}\n    sim {simulated[:-1]}"
              + (f"\n    memory gpu {recorded[-1]} sim {simulated[-1]}" if recorded[-1] != simulated[-1] else ""))
    for entry in entries:
        if entry[0] in ("ill", "died"):
            print("TROUBLE", entry)
    done = sum(entry[0] == "answers" for entry in entries)
    print(f"random: {done} programs in {time.monotonic() - start:.0f} s, {len(different)} differ, {len(kept)} kept", flush=True)
    return len(different)


def pack(ops):
    """A program as one line of text: `begin 0 1 Global; launch 0 1`."""
    return "; ".join(" ".join([name.replace(" ", "_"), *map(str, rest)]) for name, *rest in ops)


def unpack(text):
    """The program that `pack` wrote."""
    return [[name.replace("_", " "), *(int(one) if one.lstrip("-").isdigit() else one for one in rest)]
            for name, *rest in (step.split() for step in text.split("; "))]
