"""25: a network of two layers, captured, served for batches of any size, and faster than the plain stream."""
import contextlib

import numpy as np

from labkit.arrays import to_host
from labkit.backend import cudart
from labkit.errors import ok
from labkit.labs.calls import Calls, kernels_launched
from labkit.labs.caution import side_by_side
from labkit.labs.held import hasty, held, wrapped
from labkit.labs.judging import Lab
from labkit.labs.memory import copies
from labkit.labs.network import Pinned, batch_of, expected, in_a_capture, in_a_plain_stream, layers, network, some_rows, stays_within, weights

LAB = Lab("25_capstone", "Capstone", lesson="07", minutes=30)
FASTER = 1.2
ROWS = (4, 12, 30)         # the most rows of a batch
HELD = 0.1                 # seconds that the stream stands still where infer waits for it, as it should


def _expect(t, when, name, found, right):
    """t.expect for rows, from the first number on that differs, so that the words show it."""
    wrong = np.argwhere(~np.isclose(found, right))
    row, col = wrong[0] if wrong.size else (0, 0)
    t.expect(when, f"{name}[{row}, {col}:]", found[row, col:], right[row, col:])


def _beside(t, when, name, found, rows, right, old):
    """The first rows are right, and the ones after them as they were."""
    cols = np.shape(right)[1]
    found, old = np.reshape(found, (-1, cols)), np.reshape(old, (-1, cols))
    _expect(t, when, name, found[:rows], right)
    t.expect(when, f"{name}, the rows after the first {rows}, which stay as they are", found[rows:], old[rows:])


@LAB.part(points=3, sizes=ROWS, hints=(
    "How many floats does each layer make, and how many blocks of 256 threads is that?",
    "For the second layer, which buffer is its input, how long is a row of it, and how long a row of what it makes?",
    "Two launches of dense on the stream. In the second one, middle stands where inner stood, cols where middle stood, and the last argument is 0."))
def two_layers(t, answer):
    """Two dense kernels, the second after the first: hidden = relu(x w1), then out = hidden w2, for the first rows only."""
    net = network(t)
    for rows in some_rows(t):
        graph = t.parts_of(t.run(in_a_capture(t, answer), t.stream, net, rows), "graph")
        t.shape(graph, {"first": "dense", "second": "dense"}, [("first", "second")])
        stays_within(t, net, graph)
        executable = t.executable(graph)
        for which in (1, 2):
            x, old_hidden, old_out = t.fresh(net.x, net.hidden, net.out)
            hidden, out = expected(net, x.reshape(net.most, net.inner)[:rows])
            t.launch(executable, which)
            _beside(t, f"with {rows} of {net.most} rows", "net.hidden", to_host(net.hidden), rows, hidden, old_hidden)
            _beside(t, f"with {rows} of {net.most} rows", "net.out", to_host(net.out), rows, out, old_out)
            t.expect(f"with {rows} of {net.most} rows", "net.x, which nothing writes", net.x, x)


@LAB.part(points=4, sizes=ROWS, hints=(
    "What is in one stream runs in a row. Which four things are that, and which of them have you written already?",
    "How many bytes has a row of the input, and how many one of the answer? How many rows are copied?",
    "A copy that is captured is the asynchronous one of lesson 02, on the capturing stream, once up and once down. Between them call your part 1."))
def captured(t, answer):
    """A graph of four nodes in a row: a copy to the GPU, two dense kernels, a copy back, for the first rows only."""
    net = network(t)
    for rows in some_rows(t):
        calls = Calls(t)
        with copies(answer) as copied:
            graph = calls.alive(calls.run(answer, t.stream, net, rows), "graph")
        row = ["in", "first", "second", "out"]
        t.shape(graph, dict(zip(row, ("Memcpy", "dense", "dense", "Memcpy"))), list(zip(row, row[1:])))
        stays_within(t, net, graph, copied)
        executable = t.executable(graph)
        for which in (1, 2):
            x, _, _ = t.fresh(net.x, net.hidden, net.out)
            net.host_in[:], net.host_out[:] = batch_of(t, net, net.most), -1
            _, out = expected(net, net.host_in[:rows])
            t.launch(executable, which)
            when = f"with {rows} of {net.most} rows, after launch {which}"
            _beside(t, when, "net.host_out", net.host_out, rows, out, np.full((net.most, net.cols), -1))
            _beside(t, when, "net.x", to_host(net.x), rows, net.host_in[:rows], x)


def _meanwhile(t, infer, which):
    """(in words, a context): how fast the GPU is during call `which`. A race shows where launches are over at once, and where they have to wait."""
    return (("", contextlib.nullcontext()), (", the stream being busy with other work", held(t, HELD)), (", on a GPU that is through with a launch at once", hasty(t, infer)))[which % 3]


def _answered(t, net, calls, infer, batch, known, which):
    """One batch: the answer must be right, on the GPU too, and for a size that has come before there is nothing but launches on the stream."""
    rows, given, since, seen = len(batch), batch.copy(), len(calls.asked), []
    speed, meanwhile = _meanwhile(t, infer, which)
    t.fresh(net.x, net.hidden, net.out)
    net.host_in[:], net.host_out[:] = t.numbers(net.host_in.size).reshape(net.host_in.shape), -1
    hidden, out = expected(net, batch)
    with meanwhile, kernels_launched(lambda kernel, *_: seen.append(kernel.name)):
        back = calls.run(infer, batch)
    when = f"after infer(batch) with {rows} of {net.most} rows{speed}"
    t.want(isinstance(back, np.ndarray) and back.shape == out.shape, f"{when}: an array of shape {out.shape}",
           f"an array of shape {back.shape}" if isinstance(back, np.ndarray) else "None" if back is None else type(back).__name__)
    t.expect(when, "the batch, which belongs to the caller", batch, given)
    _expect(t, when, "answer", back, out)
    for name, right in (("x", batch), ("hidden", hidden), ("out", out)):
        _expect(t, f"{when}, on the GPU", f"net.{name}", to_host(getattr(net, name))[:right.size].reshape(right.shape), right)
    t.want(not (known and seen), f"{rows} rows have come before, so their batch launches a graph that is ready and no kernels", f"{', '.join(seen[:4])} launched or captured again")
    if known:
        calls.in_the_stream(since)
        calls.nothing_made(since, f"{rows} rows have come before")
    return back, out


@LAB.part(points=6, sizes=ROWS, hints=(
    "Which of the ways of lesson 07 costs least when a batch comes? What is there to keep, and by what is it found again?",
    "The graph reads one place in host memory and writes another. What has to happen before its launch, and what before you read the answer?",
    "A dictionary by the count of rows, filled with part 2 at first use. Write the batch into the pinned rows, launch, wait, and copy the answer, so that it is no view of memory that the next batch overwrites."))
def inference(t, answer):
    """A function that gives the right answer for every batch, launches one graph for a size that it knows, and is faster than the plain stream."""
    net = network(t)
    kept = [batch_of(t, net, t.size)]                          # batches stay alive: a graph may have got the address of one
    in_a_plain_stream(t, net, kept[0])
    calls = Calls(t, look=side_by_side)
    infer = t.parts_of(calls.run(answer, t.stream, net), "function")
    sizes, come, answers = some_rows(t), set(), []
    for k, rows in enumerate([*sizes[:2], *sizes[:2], *sizes[2:], *sizes[::-1], sizes[0]]):
        if k == 5:                                           # training goes on: the weights are on the GPU, and are read there
            t.put(net.w1, weights(t, net.inner, net.middle).reshape(-1))
        kept.append(batch_of(t, net, rows))
        answers.append(_answered(t, net, calls, infer, kept[-1], rows in come, k))
        come.add(rows)
    for k, (back, out) in enumerate(answers):
        t.expect(f"after {len(answers)} batches", f"the answer of batch {k + 1}, which later ones do not change", back, out)
    if t.size >= ROWS[-1]:
        _timed(t, net, infer, kept)


def _timed(t, net, infer, batches):
    def served():
        for batch in batches:
            infer(batch)

    def plain():
        for batch in batches:
            in_a_plain_stream(t, net, batch)
    t.faster("your inference", served, "the plain stream", plain, FASTER)


@LAB.part(points=3, sizes=ROWS, hints=(
    "What does a kernel node hold of the weights: the numbers, or where they lie?",
    "If the node cannot be changed, what can be?",
    "Leave both buffers where they are and copy the new numbers into them, in the order of the stream. Then wait: until when are the two arrays read?"))
def new_weights(t, answer):
    """The new numbers in the buffers that the graphs know: every executable answers with them from its next launch on, and what is queued before still with the old ones."""
    net = network(t)
    made = {}
    for rows in some_rows(t)[:3]:
        made[rows] = t.executable(t.own(in_a_capture(t, lambda rows: layers(t, net, rows))(rows)))
    before = net.w1, net.w2, net.w1.ptr, net.w2.ptr
    for which in (1, 2):
        first, second = weights(t, net.inner, net.middle), weights(t, net.middle, net.cols)
        given = [Pinned(t, *one.shape).array if which == 2 else one.copy() for one in (first, second)]
        for mine, one in zip(given, (first, second)):
            mine[:] = one
        x, _, _ = t.fresh(net.x, net.hidden, net.out)
        early, queued = next(iter(made.items()))
        _, before_it = expected(net, x.reshape(net.most, net.inner)[:early])
        left = []

        def told(*args):
            answer(*args)
            left.extend(mine.copy() for mine in given)
            for mine in given:
                mine[:] = 7
        with held(t):
            ok(cudart.cudaGraphLaunch(queued, t.stream))
            t.run(wrapped(answer, told), t.stream, net, *given)
        t.want(net.w1 is before[0] and net.w2 is before[1] and (net.w1._ptr, net.w2._ptr) == before[2:],
               "the two buffers where they were: the graphs know their addresses", "other buffers in net")
        t.expect("after new_weights(...)", "w1 as it was given", left[0], first)
        t.expect("after new_weights(...)", "w2 as it was given", left[1], second)
        was = to_host(net.out)[:before_it.size].reshape(before_it.shape)
        memory = "pinned" if which == 2 else "pageable"
        for rows, executable in made.items():
            x, old_hidden, old_out = t.fresh(net.x, net.hidden, net.out)
            hidden, out = expected(net, x.reshape(net.most, net.inner)[:rows], first, second)
            t.launch(executable, which)
            when = f"after new weights, number {which}, from {memory} memory that changed once the function had returned, in an executable for {rows} rows"
            _beside(t, when, "net.hidden", to_host(net.hidden), rows, hidden, old_hidden)
            _beside(t, when, "net.out", to_host(net.out), rows, out, old_out)
        _expect(t, f"after a launch for {early} rows that waited for its turn when new_weights(...) was called, so with the old weights", "net.out", was, before_it)
