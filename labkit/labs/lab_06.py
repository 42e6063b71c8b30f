"""06: many branches out of one node and back, and a tree."""
from labkit import graph as graphs
from labkit.labs.calls import Calls
from labkit.labs.caution import as_asked, within
from labkit.labs.judging import Lab
from labkit.labs.shapes import Found
from labkit.update import launched

LAB = Lab("06_wide_fork", "A wide fork", lesson="03", minutes=10)


def _named(address, names):
    return next(name for name, buffer in names.items() if buffer.ptr == address)


def _in_order(t, graph, names):
    """Trouble where two kernels of which one writes what the other uses may run side by side. names: {name: buffer}."""
    found, uses = Found(graph), []
    for node in graphs.nodes(graph):
        kernel = launched(node)
        addresses = [int(value) for value, p in zip(kernel.args, kernel.kernel.params) if p.pointer]
        uses.append((addresses[0], addresses))             # each of these kernels writes its first argument
    for i, (writes, some) in enumerate(uses):
        for j, (writes_too, others) in enumerate(uses[:i]):
            shared = writes if writes in others else writes_too if writes_too in some else None
            side_by_side = j not in found.paths[i] and i not in found.paths[j]
            t.want(shared is None or not side_by_side, "kernels that use one buffer, and write it, one after the other",
                   f"two that use {_named(shared, names) if shared else ''} side by side")


@LAB.part(points=4, sizes=(4, 300, 1000, 2048), hints=(
    "Which event brings a helper into the capture, and how many helpers can wait for it?",
    "What would fill do to x if it ran while a branch still reads x? For whom must the stream wait before it?",
    "As in lesson 03, a wide fork: one record and a wait for each helper, the branches, then for each helper a record in it and a wait in the stream. The branch in the stream itself needs neither."))
def wide_fork(t, answer):
    """A graph of scale, then one axpy for each buffer in outs, all side by side, then fill, which waits for all of them."""
    for branches in (2, 3, int(t.random.integers(4, 7))):
        x, outs = t.buffer(), [t.buffer() for _ in range(branches)]
        before, *_ = t.fresh(x, *outs)
        helpers, calls = [t.new_stream() for _ in range(branches - 1)], Calls(t)
        graph = calls.alive(calls.run(answer, t.stream, helpers, t.event(), t.event(), x, list(outs)), "graph")
        t.expect(f"after the capture of {branches} branches, before any launch", "x", x, before)
        middle = [f"axpy {k}" for k in range(branches)]
        found = t.shape(graph, {"scale": "scale", **dict.fromkeys(middle, "axpy"), "fill": "fill"},
                        [("scale", name) for name in middle] + [(name, "fill") for name in middle])
        names = {"x": x, **{f"outs[{k}]": out for k, out in enumerate(outs)}}
        within(t, graph, **names)
        _in_order(t, graph, names)
        ways = {"scale": ["x, 2"], **dict.fromkeys(middle, [f"{out}, x, 1" for out in names if out != "x"]), "fill": ["x, 0"]}
        for name, node in found.items():
            as_asked(t, node, *ways[name], **names)
        executable = t.executable(graph)
        for which in (1, 2):
            old, *added = t.fresh(x, *outs)
            t.launch(executable, which)
            for k, (out, start) in enumerate(zip(outs, added)):
                t.expect(f"with {branches} branches, after launch {which}", f"outs[{k}]", out, start + 2 * old)
            t.expect(f"with {branches} branches, after launch {which}", "x", x, 0 * old)


def _tree(count):
    """({name: "axpy"}, edges) of a tree that adds up so many buffers in pairs."""
    nodes, edges, below = {}, [], [f"pair {k}" for k in range(count // 2)]
    nodes.update(dict.fromkeys(below, "axpy"))
    while len(below) > 1:
        above = [f"{a} and {b}" for a, b in zip(below[::2], below[1::2])]
        edges += [(child, parent) for parent, pair in zip(above, zip(below[::2], below[1::2])) for child in pair]
        nodes.update(dict.fromkeys(above, "axpy"))
        below = above
    return nodes, edges


@LAB.part(points=6, hints=(
    "Draw it for four buffers: which two kernels can run at the same time, and in which stream is the third?",
    "If the kernel of buffer k runs in stream k // 2 of all streams, which stream made the buffer that it adds? For what must it wait?",
    "First bring all helpers in: an event right after the begin, and a wait in each. Then level by level: record in the stream of the right operand, wait in the stream of the left one, launch. Waiting for oneself does no harm."))
def tree(t, answer):
    """A graph that adds up the buffers in pairs, the sums in pairs again, and so on; buffers[0] is the sum of all."""
    for count in (4, 2, 8):
        buffers = [t.buffer() for _ in range(count)]
        before, *_ = t.fresh(*buffers)
        helpers, calls = [t.new_stream() for _ in range(count // 2 - 1)], Calls(t)
        graph = calls.alive(calls.run(answer, t.stream, helpers, t.event(), list(buffers)), "graph")
        t.expect(f"after the capture with {count} buffers, before any launch", "buffers[0]", buffers[0], before)
        t.shape(graph, *_tree(count))
        names = {f"buffers[{k}]": buffer for k, buffer in enumerate(buffers)}
        within(t, graph, **names)
        _in_order(t, graph, names)
        executable = t.executable(graph)
        for which in (1, 2):
            numbers = t.fresh(*buffers)
            t.launch(executable, which)
            t.expect(f"with {count} buffers, after launch {which}", "buffers[0]", buffers[0], sum(numbers))
