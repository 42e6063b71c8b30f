"""Planted failures and sound captures in CuPy and PyTorch; each runs in a process of its own, on a GPU.

A failed capture can leave a library's allocator in a state of its own, so none shares a process with another.
"""
import threading

from tests.watch.bench import PATIENCE, planted, prepared, sound


def stream(library):
    """A stream of the library's to capture on, with the library warm on it."""
    if library == "cupy":
        import cupy
        made = cupy.cuda.Stream(non_blocking=True)
        with made:
            (cupy.ones(4, cupy.float32) * 2 + 1).sum()
        made.synchronize()
        return made
    import torch
    made = torch.cuda.Stream()
    with torch.cuda.stream(made):
        (torch.ones(4, device="cuda") * 2 + 1).sum()
    torch.cuda.synchronize()
    return made


def in_thread(function):
    other = threading.Thread(target=function)
    other.start()
    other.join(PATIENCE)


# ---- CuPy ----

def arrays(t):
    import cupy
    t.cp, t.mode = cupy, cupy.cuda.runtime.streamCaptureModeGlobal
    with t.s:
        t.a, t.b = cupy.ones(64, cupy.float32), cupy.ones(64, cupy.float32)
        t.a += t.b
    cupy.cuda.Device().synchronize()


def old_graph(t):
    arrays(t)
    with t.s:
        t.s.begin_capture(t.mode)
        t.a += 1
        t.old = t.s.end_capture()


def finish(t):
    try:
        t.s.end_capture()
    except Exception as lost:
        return lost


@planted("WARM", 900, by="cupy")
@prepared(arrays)
def cupy_new_array_with_an_empty_pool(t):
    with t.s:
        t.cp.get_default_memory_pool().free_all_blocks()
        t.s.begin_capture(t.mode)
        t.a += 1
        try:
            big = t.cp.empty(1 << 24, t.cp.float32)  # guilty
        except Exception:
            big = None
        finish(t)
    return big


@planted("SYNC", 900, by="cupy")
@prepared(arrays)
def cupy_device_synchronize(t):
    with t.s:
        t.s.begin_capture()
        t.a += 1
        try:
            t.cp.cuda.Device().synchronize()  # guilty
        except t.cp.cuda.runtime.CUDARuntimeError as refused:
            t.kept = str(refused)
        finish(t)


@planted("EVENT", 900, by="cupy")
@prepared(arrays)
def cupy_event_done(t):
    event = t.cp.cuda.Event()
    event.record(t.cp.cuda.Stream.null)
    with t.s:
        t.s.begin_capture(t.mode)
        t.a += 1
        try:
            if event.done:  # guilty
                t.a += 1
        except Exception:
            pass
        finish(t)


@planted("HOSTMEM", 900, by="cupy")
@prepared(arrays)
def cupy_pinned_memory(t):
    with t.s:
        t.s.begin_capture(t.mode)
        t.a += 1
        try:
            t.kept = t.cp.cuda.alloc_pinned_memory(1 << 22)  # guilty
        except Exception:
            pass
        finish(t)


@planted("LEGACY", None, by="cupy", found="left_out")
@prepared(arrays)
def cupy_work_on_the_null_stream(t):
    with t.s:
        t.s.begin_capture(t.mode)
        t.a += 1
        with t.cp.cuda.Stream.null:
            t.b += 1  # guilty
        t.a += 1
        t.s.end_capture()


@planted("JOIN", 904, by="cupy", found="unjoined")
@prepared(arrays)
def cupy_fork_without_a_join(t):
    side, event = t.cp.cuda.Stream(non_blocking=True), t.cp.cuda.Event(disable_timing=True)
    with t.s:
        t.s.begin_capture(t.mode)
        t.a += 1
        event.record(t.s)
        side.wait_event(event)  # guilty
        with side:
            t.b += 1
        finish(t)


@planted("LIB", 900, by="cupy")
@prepared(arrays)
def cupy_allocation_in_a_thread(t):
    def load():
        try:
            t.kept = t.cp.cuda.runtime.malloc(1 << 20)  # guilty
        except Exception:
            pass
    with t.s:
        t.s.begin_capture(t.mode)
        t.a += 1
        in_thread(load)
        finish(t)


@planted("COMPOSE", 900, by="cupy")
@prepared(old_graph)
def cupy_launch_of_a_graph(t):
    with t.s:
        t.s.begin_capture()
        t.a += 1
        try:
            t.old.launch(t.s)  # guilty
        except Exception:
            pass
        finish(t)


@sound(by="cupy")
def cupy_elementwise(t):
    arrays(t)
    with t.s:
        t.s.begin_capture(t.mode)
        for _ in range(3):
            t.a += 1
            t.cp.multiply(t.a, t.b, out=t.b)
        t.s.end_capture()


@sound(by="cupy")
def cupy_fork_and_join(t):
    arrays(t)
    side, go, back = t.cp.cuda.Stream(non_blocking=True), t.cp.cuda.Event(disable_timing=True), t.cp.cuda.Event(disable_timing=True)
    with t.s:
        t.s.begin_capture(t.mode)
        go.record(t.s)
        side.wait_event(go)
        with side:
            t.b += 1
            back.record(side)
        t.a += 1
        t.s.wait_event(back)
        t.s.end_capture()


@sound(by="cupy")
def cupy_views_and_shapes(t):
    arrays(t)
    with t.s:
        t.s.begin_capture(t.mode)
        half = t.a[:32]
        half *= 2
        assert half.shape == (32,) and t.a.T.nbytes == t.a.nbytes
        t.s.end_capture()


# ---- PyTorch ----

def tensors(t):
    import torch
    t.torch, t.graph = torch, torch.cuda.CUDAGraph()
    with torch.cuda.stream(t.s):
        t.a, t.b = torch.ones(64, device="cuda"), torch.ones(64, device="cuda")
        t.a += t.b
    t.ev = torch.cuda.Event()
    t.ev.record(t.s)
    torch.cuda.synchronize()


def captured(t, body):
    try:
        with t.torch.cuda.graph(t.graph, stream=t.s):
            t.a.add_(1)
            body()
    except RuntimeError as lost:
        t.kept = str(lost)


@planted("SYNC", 900, by="torch")
@prepared(tensors)
def torch_item(t):
    def body():
        total = t.a.sum()
        return total.item()  # guilty
    captured(t, body)


@planted("LIB", 900, by="torch")
@prepared(tensors)
def torch_boolean_mask(t):
    def body():
        positive = t.a > 0
        chosen = t.a[positive]  # guilty
        return chosen * 2
    captured(t, body)


@planted("LIB", 900, by="torch")
@prepared(tensors)
def torch_synchronize(t):
    def body():
        t.a.mul_(2)
        t.torch.cuda.synchronize()  # guilty
    captured(t, body)


@planted("LIB", 900, by="torch")
@prepared(tensors)
def torch_indices_of_what_is_not_zero(t):
    def body():
        found = t.a.nonzero()  # guilty
        return found.shape
    captured(t, body)


@planted("EVENT", 900, by="torch")
@prepared(tensors)
def torch_event_query_in_a_thread(t):
    def poll():
        try:
            t.ev.query()  # guilty
        except RuntimeError:
            pass
    captured(t, lambda: in_thread(poll))


@planted("JOIN", 904, by="torch", found="unjoined")
@prepared(tensors)
def torch_fork_without_a_join(t):
    side = t.torch.cuda.Stream()

    def body():
        side.wait_stream(t.s)  # guilty
        with t.torch.cuda.stream(side):
            t.b.add_(1)
    captured(t, body)


@planted("LEGACY", None, by="torch", found="left_out")
@prepared(tensors)
def torch_work_on_the_default_stream(t):
    def body():
        with t.torch.cuda.stream(t.torch.cuda.default_stream()):
            t.b.add_(1)  # guilty
    captured(t, body)


def an_older_graph(t):
    tensors(t)
    t.old = t.torch.cuda.CUDAGraph()
    with t.torch.cuda.graph(t.old, stream=t.s):
        t.b.add_(1)
    t.torch.cuda.synchronize()


@planted("TEARDOWN", 900, by="torch")
@prepared(an_older_graph)
def torch_older_graph_let_go(t):
    def body():
        t.a.mul_(2)
        t.old = None  # guilty
        t.a.mul_(2)
    captured(t, body)


@sound(by="torch")
def torch_layers(t):
    tensors(t)

    def body():
        y = t.a * 2
        return (y + t.b).sum()
    captured(t, body)


@sound(by="torch")
def torch_fork_and_join(t):
    tensors(t)
    side = t.torch.cuda.Stream()

    def body():
        side.wait_stream(t.torch.cuda.current_stream())
        with t.torch.cuda.stream(side):
            t.b.add_(1)
        t.torch.cuda.current_stream().wait_stream(side)
    captured(t, body)


@sound(by="torch")
def torch_new_tensors(t):
    tensors(t)

    def body():
        fresh = t.torch.zeros(1 << 20, device="cuda")
        fresh.add_(1)
        return fresh.reshape(1024, 1024).t().shape
    captured(t, body)
