"""Random programs about memory: graphs that allocate, a pool, trims, and what the counters say.

All is in one stream, and every trim comes after a wait: what is counted then depends on no timing.
"""
from tests.conformance.counting import MIB, GraphMemory, PoolMemory, pool_attribute, pool_props

SIZES = (1, 8, 20, 40)      # MiB
THRESHOLDS = (0, 32, 48, 1000)
AUTO_FREE = 1
LONGEST = 40
STREAM = 0
STEPS = ("memory graph",) * 3 + ("instantiate", "auto free", "launch graph", "launch graph", "launch graph", "free place", "free place", "free place",
                                 "freeing graph", "upload", "destroy executable", "destroy graph", "take", "take", "give", "give", "cuda free",
                                 "threshold", "trim graphs", "trim pool", "synchronize", "counters")


def program(rng):
    """A random program about memory."""
    ops = []
    for number in range(rng.randrange(8, LONGEST - 8)):
        name = rng.choice(STEPS) if number else "memory graph"
        rest = {"memory graph": lambda: [_text(rng)], "take": lambda: [rng.choice(SIZES)], "threshold": lambda: [rng.choice(THRESHOLDS)],
                "trim pool": lambda: [rng.choice((0, 1, 32, 64, 100))], "synchronize": lambda: [STREAM],
                "trim graphs": list, "counters": list}.get(name, lambda: [rng.randrange(4)])()
        ops.append([name, 0, *rest])
        if name == "memory graph" and rng.random() < 0.8:
            ops.append([rng.choice(("instantiate", "instantiate", "auto free")), 0, -1])
            ops.append(["launch graph", 0, -1])
        if rng.random() < 0.3:
            ops.append(["counters", 0])
    return [*ops[:LONGEST - 2], ["synchronize", 0, STREAM], ["counters", 0]]


def _text(rng):
    """What a graph allocates and frees, such as "a20,-a,b8"."""
    steps, held, names = [], [], list("abcd")
    for _ in range(rng.randrange(1, 7)):
        if held and rng.random() < 0.45:
            steps.append("-" + held.pop(rng.randrange(len(held))))
        elif names:
            held.append(names.pop(0))
            steps.append(f"{held[-1]}{rng.choice(SIZES)}")
    return ",".join(steps + ["-" + name for name in held if rng.random() < 0.7])


class Steps:
    """The operations, for the class that runs programs."""

    pool = None

    def start(self):
        """The pool and the counters, made by the first operation that wants them."""
        if self.pool is None:
            self.pool = self.t._put("cudaMemPoolCreate", pool_props(self.t))
            self.graph_memory, self.pool_memory = GraphMemory(self.t), PoolMemory(self.t, self.pool)
            self.taken, self.first = [], None

    def memory_graph(self, number, thread, text):
        self.start()
        stream, places, codes = self.streams[STREAM], {}, []
        codes.append(self.code("cudaStreamBeginCapture", stream, self.t.mode("Global")))
        for step in text.split(","):
            if step[0] == "-":
                codes.append(self.code("cudaFreeAsync", places[step[1:]], stream))
            else:
                code, ptr = self.call("cudaMallocAsync", int(step[1:]) * MIB, stream)
                places[step[0]] = int(ptr or 0)
                codes.append(int(code))
        code, graph = self.call("cudaStreamEndCapture", stream)
        first = next(iter(places.values()))
        self.add_graph(graph, STREAM, tuple(places.values()))
        return [*codes, int(code), [(place - first) // MIB for place in places.values()]]

    def freeing_graph(self, number, thread, which):
        """A graph that frees memory of another."""
        place = self.place_of_a_graph(which)
        if place is None:
            return "none"
        stream = self.streams[STREAM]
        codes = [self.code("cudaStreamBeginCapture", stream, self.t.mode("Global")), self.code("cudaFreeAsync", place, stream)]
        code, graph = self.call("cudaStreamEndCapture", stream)
        self.add_graph(graph, STREAM, ())
        return [*codes, int(code)]

    def place_of_a_graph(self, which):
        """An address that a graph allocates; one of a graph that is gone may be another's by now."""
        return self.some([place for graph in self.graphs for place in graph.places], which)

    def free_places(self, graph):
        """The codes of freeing all that a graph allocates and may have left."""
        return [self.code("cudaFreeAsync", place, self.streams[STREAM]) for place in graph.places]

    def free_place(self, number, thread, which):
        place = self.place_of_a_graph(which)
        return "none" if place is None else self.code("cudaFreeAsync", place, self.streams[STREAM])

    def auto_free(self, number, thread, which):
        return self.instantiate(number, thread, which, AUTO_FREE)

    def take(self, number, thread, size):
        self.start()
        code, ptr = self.call("cudaMallocFromPoolAsync", size * MIB, self.pool, self.streams[STREAM])
        if code != 0:
            return int(code)
        self.first = self.first or int(ptr)
        self.taken.append(int(ptr))
        return [int(code), (int(ptr) - self.first) // MIB]

    def give(self, number, thread, which):
        self.start()
        return self.code("cudaFreeAsync", self.taken.pop(which % len(self.taken)), self.streams[STREAM]) if self.taken else "none"

    def cuda_free(self, number, thread, which):
        self.start()
        return self.code("cudaFree", self.taken.pop(which % len(self.taken))) if self.taken else "none"

    def threshold(self, number, thread, size):
        self.start()
        return self.code("cudaMemPoolSetAttribute", self.pool, pool_attribute(self.t, "ReleaseThreshold"), self.t.u64(size * MIB))

    def trim_graphs(self, number, thread):
        return [self.synchronize(number, thread, STREAM), self.code("cudaDeviceGraphMemTrim", 0)]

    def trim_pool(self, number, thread, keep):
        self.start()
        return [self.synchronize(number, thread, STREAM), self.code("cudaMemPoolTrimTo", self.pool, keep * MIB)]

    def counters(self, number, thread):
        self.start()
        return [self.graph_memory.now(), self.pool_memory.now()]
