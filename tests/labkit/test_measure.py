"""measure(), timeline(), predict(): honest figures, and none at all for code that was not timed."""
import dataclasses
import enum
import functools
import gc
import importlib
import json
import linecache
import pathlib
import time
import types

import numpy as np
import pytest

from labkit.errors import LabError
from labkit.kernels import Kernel
from labkit.params import kernel_params
from labkit.predict import predict

m = importlib.import_module("labkit.measure")
t = importlib.import_module("labkit.timeline")
r = importlib.import_module("labkit.recordings")
recorded_of = importlib.import_module("labkit.measurement").recorded      # `recorded` is a fixture here

SCALE = 3
noop = Kernel('extern "C" __global__ void noop(int n) {}', "noop", ["int"])


def helper(x):
    return x * SCALE


def slow(n):
    """Calls a helper, a kernel and itself by name."""
    total = [helper(i) for i in range(n)]
    return None if n < 0 else (noop, slow, total)[0] and None


def fast(n):
    return None


def outer():
    k = 3

    def nested(n, m=SCALE):
        # text that tools for source code stumble over
        s = """two
   lines { } """ + f"{k!r:>{n}} {'a' if n else 'b'}"
        with open(s) as a, open(s) as b:
            pass
        match n:
            case [1, *rest]:
                return rest, a, b, [helper(i) for i in range(n) if (lambda z: z + k)(i)] \
                    + [m]
        # the end
    # after it
    return nested


nested = outer()


# ---- a machine made up for the tests -----------------------------------------------------------

class Code(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorStreamCaptureUnsupported = 900


class Machine:
    """A cudart that answers just enough, and says in what order it was asked."""
    __name__ = "made_up"
    cudaError_t = Code

    def __init__(self):
        self.log, self.capturing = [], 0

    def cudaDeviceSynchronize(self):
        self.log.append("sync")
        return (Code.cudaErrorStreamCaptureUnsupported if self.capturing else Code.cudaSuccess,)

    def cudaStreamSynchronize(self, stream):
        self.log.append(f"sync {stream}")
        return (Code.cudaSuccess,)

    def cudaStreamIsCapturing(self, stream):
        return Code.cudaSuccess, self.capturing

    def cudaMemset(self, ptr, value, size):
        return (Code.cudaSuccess,)


HERE = r.Provenance("Made Up 9000", "1.2.3", "13.3", "13.4.4", "3.11", "2026-01-02")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """The made-up machine; machine.use("gpu") or ("sim"). Recordings go to and come from a folder of their own."""
    from labkit.backend import Backend
    machine = Machine()

    def use(name):
        for module in (m, t, r):
            monkeypatch.setattr(module, "cudart", machine)
            monkeypatch.setattr(module, "backend", Backend(name, "made up"))

    machine.use, machine.folder = use, tmp_path
    monkeypatch.setattr(r, "here", lambda how="measured": HERE)
    monkeypatch.setattr(r, "DATA", tmp_path)
    monkeypatch.delenv("LABKIT_RECORD", raising=False)
    use("sim")
    return machine


@pytest.fixture
def recorded(machine, monkeypatch):
    """The experiment "cost" with slow and fast at n = 2 and 10, measured on the made-up GPU and recorded."""
    machine.use("gpu")
    monkeypatch.setenv("LABKIT_RECORD", str(machine.folder))
    out = {n: m.measure("The cost", {"stream": slow, "graph": fast}, repeat=5, n=n) for n in (10, 2)}
    monkeypatch.delenv("LABKIT_RECORD")
    machine.use("sim")
    return out


cells = iter(range(10 ** 6))


def cell(source, names=None, **more):
    """Run a notebook cell as Jupyter does, its text readable through linecache; the names it made, in `names` where given."""
    names = more if names is None else names
    file = f"<cell {next(cells)} of test_measure>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names["__name__"] = "__main__"
    exec(compile(source, file, "exec"), names)
    return names


def digest_of(source, name="f", **names):
    return r.digest({"v": cell(source, **names)[name]})


# ---- what a recording is keyed by --------------------------------------------------------------

def test_the_digest_is_this_on_every_python_version():
    assert r.digest({"stream": slow, "graph": fast}) == "8b14f7a8f0d49027"
    assert r.digest({"nested": nested}) == "85fa4b0f6f0c9069"


def test_changed_text_changes_the_digest_and_other_cells_do_not():
    one = digest_of("def f(n):\n    return n + 1\n")
    assert one == digest_of("x = 1\n\ndef f(n):\n    return n + 1\n\n\nprint\n")
    assert one != digest_of("def f(n):\n    return n + 2\n")


@pytest.mark.parametrize("before, after", [
    ({"K": 3}, {"K": 4}), ({"K": "a"}, {"K": "b"}), ({"K": (1, 2)}, {"K": (1, 3)}), ({"K": 3}, {"K": 3.0}),
    ({"K": np.float32(2)}, {"K": np.float32(3)}), ({"K": Code.cudaSuccess}, {"K": Code.cudaErrorInvalidValue}),
    ({"K": Kernel("a", "k", ["int"])}, {"K": Kernel("b", "k", ["int"])})])
def test_a_value_that_the_code_reads_counts(before, after):
    source = "def f():\n    return [K for _ in range(2)]\n"
    assert digest_of(source, **before) == digest_of(source, **before)
    assert digest_of(source, **before) != digest_of(source, **after)


def test_a_helper_of_the_same_notebook_counts_and_so_does_its_helper():
    source = "def h():\n    return {}\ndef g():\n    return h()\ndef f():\n    return g()\n"
    assert digest_of(source.format(1)) != digest_of(source.format(2))


def test_a_class_of_the_same_notebook_counts():
    source = "class Made:\n    def go(self):\n        return {}\ndef f():\n    return Made()\n"
    assert digest_of(source.format(1)) != digest_of(source.format(2))


def test_addresses_and_what_is_only_named_alike_do_not_count():
    source = "def f(K):\n    g = lambda x: x.K\n    return g, P, A\n"
    array = np.zeros(3)
    assert digest_of(source, K=1, x=1, P=2 ** 40, A=array) == digest_of(source, K=2, x=2, P=2 ** 41, A=array + 1)
    assert digest_of(source, P=1, A=np.zeros(3)) != digest_of(source, P=1, A=np.zeros(4))


def test_the_text_of_labkit_and_python_does_not_count_but_the_name_does():
    import math
    import textwrap
    from labkit.kernels import launch
    source = "def f():\n    return tool\n"
    found = [digest_of(source, tool=tool) for tool in (launch, textwrap.dedent, math.sin, math.cos, np.zeros, np.mean, np.add, int)]
    assert len(set(found)) == len(found) and found[0] == digest_of(source, tool=launch)


def test_a_type_of_numpy_counts_by_its_name_alone():
    source = "def f():\n    return T(1)\n"

    def made_up(name, **methods):
        return type(name, (), {"__module__": "numpy", **methods})
    for name in ("float32", "int32", "ndarray", "dtype"):
        real = digest_of(source, T=getattr(np, name))
        assert real == digest_of(source, T=made_up(name)) == digest_of(source, T=made_up(name, is_integer=len, newer=3, older=lambda self: 4))
    assert len({digest_of(source, T=kind) for kind in (np.float32, np.float64, np.int32, np.bool_)}) == 4


def test_a_type_of_numpy_named_in_the_code_gives_this_digest_with_every_numpy():
    assert digest_of("def f():\n    return np.float32(1), np.int32(1), np.ndarray\n", np=np) == "9de1e6b261f5a7b5"
    assert digest_of("def f():\n    return T(1)\n", T=np.float32) == "8890ce1c350a7735"


def test_a_class_of_an_installed_package_counts_by_its_name_and_your_own_with_all_it_has():
    import pluggy
    source = "def f():\n    return T\n"
    newer = type("PluginManager", (), {"__module__": pluggy.PluginManager.__module__, "a_method_of_the_next_version": len})
    assert digest_of(source, T=pluggy.PluginManager) == digest_of(source, T=newer)
    mine, changed = (type("Mine", (pluggy.PluginManager,), {"__module__": "__main__", "size": size}) for size in (3, 4))
    assert digest_of(source, T=mine) != digest_of(source, T=changed)


def ten_times(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        for _ in range(10):
            function(*args, **kwargs)
    return wrapped


class Machinery:
    size = 3


@pytest.mark.parametrize("change", [
    lambda names: names.update(g=ten_times(names["g"])), lambda names: names.update(g=functools.lru_cache(names["g"])),
    lambda names: names.update(g=functools.partial(names["g"], 2)), lambda names: names.update(L=[1, 3]), lambda names: names.update(D={"a": 2}),
    lambda names: setattr(names["M"], "kernel", Kernel("slow", "k", ["int"])), lambda names: names.update(C=type("C", (), {"size": 4})),
    lambda names: setattr(names["g"], "__defaults__", (9,))], ids=["wrapped", "cached", "partial", "list", "dict", "attribute of a module", "class attribute", "default"])
def test_what_could_hide_a_change_counts(change):
    source = "def g(n=1):\n    return n\ndef f():\n    return g(), L, D, M.kernel, C\n"

    def fresh():
        module = types.ModuleType("kernels_of_mine")
        module.kernel = Kernel("quick", "k", ["int"])
        return cell(source, L=[1, 2], D={"a": 1}, M=module, C=type("C", (), {"size": 3}))
    same, changed = fresh(), fresh()
    change(changed)
    assert r.digest({"v": fresh()["f"]}) == r.digest({"v": same["f"]}) != r.digest({"v": changed["f"]})


def test_a_wrapped_variant_is_not_the_variant():
    assert r.digest({"v": slow}) != r.digest({"v": ten_times(slow)})


def test_what_cannot_be_named_has_no_recording():
    source = "def f():\n    return T\n"
    assert digest_of(source, T=Machinery()) != digest_of(source, T=Machinery())


def prepared(source="quick", grid=4, block=256, shared=0, address=2 ** 40, a=2.0, n=1000, kernel=None):
    kernel = kernel or Kernel(f'extern "C" __global__ void k(float* y, float a, int n) {{{{/* {source} */}}}}', "k", ["float*", "float", "int"])
    return kernel_params(kernel, grid, block, address, a, n, shared=shared)


def test_prepared_parameters_count_with_all_but_their_addresses():
    source = "def f(batch):\n    return P[batch]\n"
    one = digest_of(source, P={1: [prepared()]})
    assert one == digest_of(source, P={1: [prepared()]}) == digest_of(source, P={1: [prepared(address=2 ** 41)]}) == digest_of(source, P={1: [prepared(address=64)]})
    assert one == digest_of(source, P={1: [prepared(grid=(4, 1, 1))]})
    others = [prepared("slow"), prepared(grid=5), prepared(block=128), prepared(shared=64), prepared(a=3.0), prepared(n=999)]
    assert len({one, *(digest_of(source, P={1: [other]}) for other in others)}) == 7


def test_prepared_parameters_count_with_the_size_of_their_buffers():
    from labkit import to_device
    source = "def f():\n    return P\n"
    four, also_four, five = (to_device(np.zeros(size, np.float32)) for size in (4, 4, 5))
    assert digest_of(source, P=prepared(address=four)) == digest_of(source, P=prepared(address=also_four)) != digest_of(source, P=prepared(address=five))


def test_handles_in_containers_do_not_count():
    from labkit import cudart
    source = "def f(batch):\n    return E[batch], N\n"

    def with_handles(*values):
        return digest_of(source, E={1: cudart.cudaGraphExec_t(values[0])}, N=[cudart.cudaGraphNode_t(value) for value in values])
    assert with_handles(11, 12) == with_handles(21, 22) != with_handles(11)


def test_waiting_for_a_stream_is_another_experiment(machine, recorded):
    assert m.measure("The cost", {"stream": slow, "graph": fast}, stream=1, n=2).missing


def test_true_is_not_one(machine, recorded):
    assert not m.measure("The cost", {"stream": slow, "graph": fast}, n=2).missing
    assert r.find("measurements", "The cost", {"n": True}, "any") is None


def test_a_closure_counts_with_its_values_even_where_it_rebinds_them():
    source = "def outer():\n    n = {}\n    def f():\n        nonlocal n\n        n += 1\n    return f\nf = outer()\n"
    assert digest_of(source.format(1)) != digest_of(source.format(2))


def test_roles_and_setup_count():
    assert len({r.digest({"a": fast}), r.digest({"b": fast}), r.digest({"a": fast, "setup": fast})}) == 3


def test_code_without_a_source_is_refused():
    names = {}
    exec("def f():\n    pass\n", names)
    with pytest.raises(LabError, match="source of f"):
        r.digest({"v": names["f"]})


# ---- where figures come from --------------------------------------------------------------------

class Properties:
    name = b"Made Up 9000\0\0"


@pytest.mark.parametrize("release, says", [("580.159.04", "580.159.04"), ("", "for CUDA 12.8")])
def test_provenance_names_the_driver(monkeypatch, release, says):
    class Cuda:
        cudaGetDevice = staticmethod(lambda: (Code.cudaSuccess, 0))
        cudaGetDeviceProperties = staticmethod(lambda device: (Code.cudaSuccess, Properties))
        cudaRuntimeGetVersion = staticmethod(lambda: (Code.cudaSuccess, 13030))

    monkeypatch.setattr(r, "cudart", Cuda)
    monkeypatch.setattr(r.driver, "ask", lambda: r.driver.Driver(0, 12080, 1, "Made Up 9000", (9, 0), release))
    r._machine.cache_clear()
    assert str(r.here()).startswith(f"Made Up 9000 · driver {says} · runtime 13.3 · 2") and str(r.here()).endswith("measured")
    r._machine.cache_clear()


# ---- what cannot be measured -------------------------------------------------------------------

@pytest.mark.parametrize("variants, word", [({"a": lambda n: n}, "lambda"), ({"a": print}, "builtin"), ({}, "nothing"), ([slow], "nothing")])
def test_a_variant_is_a_named_function(machine, variants, word):
    with pytest.raises(LabError, match=word):
        m.measure("x", variants, n=1)


def test_a_parameter_is_a_plain_value(machine):
    with pytest.raises(LabError, match="parameter n is a list"):
        m.measure("x", {"a": fast}, n=[1])


def test_an_error_in_a_variant_names_the_variant_and_the_line(machine):
    def broken(n):
        raise KeyError("gone")
    with pytest.raises(LabError, match="'graph' of 'x': KeyError.*\n.*raise KeyError"):
        m.measure("x", {"stream": fast, "graph": broken}, n=1)


def test_an_error_code_that_a_variant_returns_is_not_ignored(machine):
    def bad(n):
        return (Code.cudaErrorInvalidValue,)
    with pytest.raises(LabError, match="In 'bad'.*") as caught:
        m.measure("x", {"bad": bad}, n=1)
    assert caught.value.code == Code.cudaErrorInvalidValue


@pytest.mark.parametrize("stream", [None, 7])
@pytest.mark.parametrize("where", ["sim", "gpu"])
def test_a_capture_left_open_is_named(machine, stream, where):
    def opens(n):
        machine.capturing = 1
    machine.use(where)
    with pytest.raises(LabError, match="capture was left open"):
        m.measure("x", {"a": opens}, stream=stream, n=1)


# ---- measuring ---------------------------------------------------------------------------------

def test_variants_run_in_turns_after_a_warm_up_and_each_is_waited_for(machine):
    machine.use("gpu")

    def a(made, n):
        machine.log.append("a")

    def b(made, n):
        machine.log.append("b")

    def setup(n):
        machine.log.append("setup")
    out = m.measure("x", {"a": a, "b": b}, setup=setup, stream=7, repeat=4, warmup=2, n=1)
    assert machine.log == ["setup"] + ["a", "sync 7", "b", "sync 7"] * 6
    assert out.e2e["a"].count == 4 and out.provenance.how == "measured"
    for stat in (out.cpu["a"], out.e2e["a"]):
        assert 0 < stat.low <= stat.median <= stat.high
    assert out.cpu["a"].median <= out.e2e["a"].median


def test_garbage_collection_waits_and_comes_back_even_after_an_interrupt(machine):
    machine.use("gpu")
    seen = []

    def a():
        seen.append(gc.isenabled())
        if len(seen) == 5:
            raise KeyboardInterrupt
    assert gc.isenabled()
    with pytest.raises(KeyboardInterrupt):
        m.measure("x", {"a": a}, warmup=3)
    assert seen == [True] * 3 + [False] * 2 and gc.isenabled()


def test_the_simulator_runs_everything_once_and_shows_the_recording(machine, recorded):
    runs = []
    out = m.measure("The cost", {"stream": slow, "graph": fast}, n=10)
    assert out.e2e == recorded[10].e2e and out.cpu == recorded[10].cpu
    assert out.provenance.how == "recorded" and str(out.provenance).endswith("2026-01-02 · recorded")
    assert not out.missing and machine.log[-2:] == ["sync", "sync"]

    def counted(made, n):
        runs.append(made)
    m.measure("other", {"a": counted}, setup=helper_setup, n=4)
    assert runs == [4]


def helper_setup(n):
    return n


def test_changed_code_has_no_recording_and_says_so(machine, recorded):
    def graph(n):
        return None
    out = m.measure("The cost", {"stream": slow, "graph": graph}, n=10)
    assert out.missing and "No recording for this code" in repr(out) and "if you changed nothing, no recording exists yet" in repr(out) and not out.e2e and out.provenance is None
    with pytest.raises(LabError, match="No recording"):
        out.speedup("stream", "graph")
    with pytest.raises(LabError, match="no figure for 'stream'"):
        out.e2e["stream"]


def test_other_parameters_have_no_recording(machine, recorded):
    assert m.measure("The cost", {"stream": slow, "graph": fast}, n=11).missing
    assert not m.measure("The cost", {"stream": slow, "graph": fast}, repeat=2, warmup=9, n=10).missing


def test_a_recording_replaces_only_its_own_and_the_file_is_in_order(machine, recorded, monkeypatch):
    file = machine.folder / "measurements" / "the-cost.json"
    assert [e["params"]["n"] for e in json.loads(file.read_text())["entries"]] == [2, 10]
    machine.use("gpu")
    monkeypatch.setenv("LABKIT_RECORD", str(machine.folder))
    again = m.measure("The cost", {"stream": slow, "graph": fast}, repeat=5, n=2)
    entries = json.loads(file.read_text())["entries"]
    assert [e["params"]["n"] for e in entries] == [2, 10]
    assert entries[0]["e2e"]["stream"]["median"] == again.e2e["stream"].median
    assert list(file.parent.iterdir()) == [file]


def test_a_measurement_reads_as_a_table_and_carries_its_data(recorded):
    text, bundle = str(recorded[10]), recorded[10]._repr_mimebundle_()
    assert "n = 10" in text and "stream" in text and "end to end" in text and "Made Up 9000 · driver 1.2.3" in text
    assert bundle["application/vnd.labkit+json"]["e2e"]["graph"]["median"] == recorded[10].e2e["graph"].median
    assert recorded[10].speedup("stream", "graph") == recorded[10].e2e["stream"].median / recorded[10].e2e["graph"].median


# ---- stages ------------------------------------------------------------------------------------

def in_two(batch):
    """A variant that marks two stages."""
    yield "prepare"
    yield "launch"


def in_one(batch):
    yield "all"


BATCHES = {"batch": [3, 8, 1, 5]}


def test_a_generator_runs_to_its_last_yield_then_the_gpu_is_waited_for_then_it_tidies_up(machine):
    machine.use("gpu")

    def staged(made, n):
        machine.log.append("prepare")
        yield "prepare"
        machine.log.append("launch")
        yield "launch"
        machine.log.append("tidy up")

    def plain(made, n):
        machine.log.append("plain")

    def setup(n):
        pass
    out = m.measure("x", {"staged": staged, "plain": plain}, setup=setup, stream=7, repeat=4, warmup=1, n=1)
    one_round = ["prepare", "launch", "sync 7", "tidy up", "plain", "sync 7"]
    assert machine.log[-24:] == one_round * 4
    assert list(out.stages["staged"]) == ["prepare", "launch"] and out.stages["plain"] == {}
    assert out.stages["staged"]["prepare"].count == 4


def test_the_stages_make_up_the_cpu_time_and_the_wait_comes_on_top(machine):
    machine.use("gpu")
    out = m.measure("x", {"staged": in_two}, repeat=1, batch=1)
    parts = sum(stat.median for stat in out.stages["staged"].values())
    assert parts == pytest.approx(out.cpu["staged"].median, abs=0.002) and out.cpu["staged"].median <= out.e2e["staged"].median


def test_what_follows_the_last_yield_is_not_timed(machine):
    machine.use("gpu")

    def slow_to_tidy():
        yield "launch"
        time.sleep(0.02)
    assert m.measure("x", {"a": slow_to_tidy}, repeat=3, warmup=0).e2e["a"].median < 10_000


def test_a_stage_that_is_asked_for_by_a_wrong_name_says_which_there_are(machine):
    machine.use("gpu")
    stages = m.measure("x", {"a": in_two}, repeat=1, batch=1).stages
    with pytest.raises(LabError, match="no stage 'lunch'.\n.*prepare, launch"):
        stages["a"]["lunch"]
    with pytest.raises(LabError, match="no figure for 'b'"):
        stages["b"]


def yields(*names, otherwise=None):
    """A generator function that yields these names, and in every second call the others."""
    calls = []

    def variant():
        calls.append(1)
        yield from names if otherwise is None or len(calls) % 2 else otherwise
    return variant


@pytest.mark.parametrize("variant, words", [
    (yields(), "yielded nothing"), (yields(3), "yielded 3"), (yields(""), "yielded ''"), (yields("cpu"), "yielded 'cpu'"), (yields("a", "a"), "'a' twice"),
    (yields(None), "yielded None"), (yields("a", "b", otherwise=("a",)), "were: a, b. In a later call they were: a."),
    (yields("a", otherwise=("a", "b")), "were: a. In a later call they were: a, b."), (yields("a", otherwise=("b",)), "were: a. In a later call they were: b.")])
@pytest.mark.parametrize("warmup", [0, 3])
def test_stages_are_names_and_the_same_ones_in_every_call(machine, variant, words, warmup):
    machine.use("gpu")
    with pytest.raises(LabError, match=f"In 'v' of 'x': .*{words}"):
        m.measure("x", {"v": variant}, warmup=warmup)


def test_stages_that_depend_on_the_value_show_on_the_simulator_too(machine):
    def v(batch):
        yield "small" if batch < 4 else "large"
    with pytest.raises(LabError, match="were: small. In a later call they were: large"):
        m.measure("x", {"v": v}, vary=BATCHES)


@pytest.mark.parametrize("where", ["sim", "gpu"])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_an_interrupted_generator_is_closed_and_blamed(machine, where, after):
    machine.use(where)
    closed, calls = [], []

    def v():
        calls.append(1)
        try:
            yield "prepare"
            if len(calls) > (after if where == "gpu" else 0):
                raise KeyError("gone")
            yield "launch"
        finally:
            closed.append(1)
    with pytest.raises(LabError, match="In 'v' of 'x': KeyError"):
        m.measure("x", {"v": v}, warmup=3)
    assert len(closed) == len(calls)


def test_a_generator_is_closed_where_waiting_for_the_gpu_fails(machine, monkeypatch):
    closed, answers = [], iter([0] * 4 + [1] * 9)

    def v():
        try:
            yield "launch"
        finally:
            closed.append(1)
    machine.use("gpu")
    monkeypatch.setattr(machine, "cudaDeviceSynchronize", lambda: (Code(next(answers)),), raising=False)
    with pytest.raises(LabError, match="In 'v'") as caught:
        m.measure("x", {"v": v}, warmup=3)
    assert caught.value.code == Code.cudaErrorInvalidValue and len(closed) == 5


def test_an_error_code_that_a_generator_returns_is_not_ignored(machine):
    def bad():
        yield "launch"
        return (Code.cudaErrorInvalidValue,)
    with pytest.raises(LabError, match="In 'bad'"):
        m.measure("x", {"bad": bad})


def test_a_stage_may_end_inside_a_capture(machine):
    """Nothing waits for a stream that captures, and what tidies up finds the work done."""
    def v():
        machine.capturing = 1
        machine.log.append("begin")
        yield "begin"
        machine.log.append("end")
        machine.capturing = 0
        yield "end"
        machine.log.append("tidy up")
    m.measure("x", {"v": v}, stream=7)
    assert machine.log == ["begin", "end", "sync 7", "tidy up", "sync 7"]


def test_a_wrapped_generator_function_is_not_timed_as_a_plain_call(machine):
    machine.use("gpu")

    def wrapped():
        return in_two(1)
    assert list(m.measure("x", {"v": wrapped}, warmup=1).stages["v"]) == ["prepare", "launch"]
    with pytest.raises(LabError, match="stages are not known.*\n.*warmup=0"):
        m.measure("x", {"v": wrapped}, warmup=0)


# ---- varied parameters -------------------------------------------------------------------------

def test_each_round_passes_the_next_value_the_same_to_all_and_the_warm_up_goes_through_them_once(machine):
    machine.use("gpu")
    seen = {"a": [], "b": []}

    def a(n, batch):
        seen["a"].append(batch)

    def b(n, batch):
        seen["b"].append(batch)
    out = m.measure("x", {"a": a, "b": b}, vary=BATCHES, repeat=6, n=2)
    assert seen["a"] == seen["b"] == [3, 8, 1, 5, 3, 8] * 2
    assert out.vary == BATCHES and out.params == {"n": 2, "batch": "varies: 3 8 1 5"}


def test_setup_gets_the_parameters_that_do_not_vary(machine):
    seen = []

    def setup(n):
        return n

    def a(made, n, batch):
        seen.append((made, n, batch))
    m.measure("x", {"a": a}, setup=setup, vary={"batch": np.array([3, 8, 1, 5, 8])}, n=2)
    assert seen == [(2, 2, 3), (2, 2, 8), (2, 2, 1)]         # three values are enough to show a mistake
    assert all(type(batch) is int for *_, batch in seen)


def test_two_parameters_vary_each_at_its_own_pace(machine):
    machine.use("gpu")
    seen = []

    def a(k, w):
        seen.append((k, w))
    m.measure("x", {"a": a}, vary={"k": [1, 2, 3], "w": ["x", "y"]}, repeat=4, warmup=0)
    assert seen == [(1, "x"), (2, "y"), (3, "x"), (1, "y")]


@pytest.mark.parametrize("vary, words", [
    ({"batch": [3, 3, 3]}, "every call would get 3"), ({"batch": [3]}, "Nothing varies"), ({"batch": []}, "list of its values"), ({"batch": 3}, "list of its values"),
    ({"batch": "3815"}, "list of its values"), ([3, 8], "names the parameters that change"), ({"n": [1, 2]}, "n is a parameter and varies too"),
    ({"batch": [[1], [2]]}, "parameter batch is a list"), ({3: [1, 2]}, "list of its values")])
def test_values_that_do_not_vary_are_refused(machine, vary, words):
    with pytest.raises(LabError, match=words):
        m.measure("x", {"a": fast}, vary=vary, n=1)


def test_one_round_cannot_vary(machine):
    with pytest.raises(LabError, match="Nothing varies.*\n.*repeat=2"):
        m.measure("x", {"a": in_one}, vary=BATCHES, repeat=1)


@pytest.fixture
def staged(machine, monkeypatch):
    """A measurement with stages and a varied batch, as the made-up GPU gave it; it is recorded, and the simulator is on."""
    machine.use("gpu")
    monkeypatch.setenv("LABKIT_RECORD", str(machine.folder))
    out = m.measure("Dynamic batch", {"two": in_two, "one": in_one}, vary=BATCHES)
    monkeypatch.delenv("LABKIT_RECORD")
    machine.use("sim")
    return out


def test_the_recording_holds_the_stages_in_their_order_and_is_keyed_by_the_values(machine, staged):
    again = m.measure("Dynamic batch", {"two": in_two, "one": in_one}, vary=BATCHES)
    assert again.stages == staged.stages and list(again.stages["two"]) == ["prepare", "launch"] and again.e2e == staged.e2e
    assert again.vary == BATCHES and again.provenance.how == "recorded"
    for other in ([3, 8, 1], [3, 8, 1, 5, 3], [3, 8, 1, "5"], [3, 8, True, 5]):
        assert m.measure("Dynamic batch", {"two": in_two, "one": in_one}, vary={"batch": other}).missing


def test_a_measurement_shows_its_stages_as_columns_and_carries_them(staged):
    head, columns, two, one, _ = str(staged).splitlines()
    assert head == "Dynamic batch, batch varies: 3 8 1 5"
    assert columns.split()[:4] == ["prepare", "launch", "all", "CPU"]
    assert two.split()[0] == "two" and two.split().count("–") == 1 and one.split().count("–") == 2
    data = staged._repr_mimebundle_()["application/vnd.labkit+json"]
    assert data["stages"]["two"]["launch"]["median"] == staged.stages["two"]["launch"].median and data["vary"] == BATCHES
    json.dumps(data)


def test_a_long_list_of_values_is_shortened_where_it_is_shown_and_nowhere_else(machine):
    out = m.measure("x", {"a": in_one}, vary={"batch": range(40)}, repeat=40)
    assert str(out).splitlines()[0] == "x, batch varies: 0 1 2 3 4 5 6 7 ..." and out.params["batch"].endswith(" 39") and out.missing


def test_figures_without_stages_look_and_are_kept_as_before(machine, recorded):
    entry = r.find("measurements", "The cost", {"n": 2}, r.digest({"stream": slow, "graph": fast}, "waits for the device"))
    assert set(entry) == {"params", "digest", "provenance", "cpu", "e2e"}
    assert set(recorded[2]._repr_mimebundle_()["application/vnd.labkit+json"]) == {"measurement", "params", "provenance", "cpu", "e2e"}
    assert recorded[2].stages == {"stream": {}, "graph": {}} and recorded[2].vary == {}


@pytest.mark.skipif(importlib.import_module("labkit.backend").backend.name == "gpu", reason="a GPU measures anew")
def test_the_recordings_of_earlier_lessons_are_still_found():
    """The code cells of lesson 01 on the simulator: what a GPU recorded for them is what they show."""
    lesson = pathlib.Path(r.__file__).parents[1] / "authoring" / "lessons" / "01_launch_cost.py"
    names = {}
    for part in lesson.read_text(encoding="utf-8").split("# %%")[1:]:
        kind, source = part.split("\n", 1)
        if "[markdown]" not in kind and "draw." not in source:
            cell(source, names)
    for experiment, count in (("costs", 7), ("sizes", 8)):
        found = names[experiment]
        assert len(found) == count and not any(one.missing for one in found) and all(one.provenance.how == "recorded" for one in found)


# ---- figures that something else took ----------------------------------------------------------

def test_a_recording_is_read_by_its_name_whatever_its_code(machine, staged):
    out = recorded_of("Dynamic batch", batch="varies: 3 8 1 5")
    assert out.e2e == staged.e2e and out.stages == staged.stages and str(out.provenance).endswith("recorded")


def test_the_newest_recording_is_read(machine):
    for date, median in (("2026-02-01", 1.0), ("2026-03-01", 2.0), ("2026-01-01", 3.0)):
        stat = {"a": {"median": median, "low": 1.0, "high": 3.0, "count": 5}}
        r.save(machine.folder, "measurements", "c++ launch", {"n": 1}, date, dataclasses.replace(HERE, date=date), cpu=stat, e2e=stat)
    assert recorded_of("c++ launch", n=1).e2e["a"].median == 2.0


def test_what_is_not_recorded_says_what_is(machine, staged):
    with pytest.raises(LabError, match="no recorded 'Dynamic batch' with n = 3.\n.*recorded with batch varies: 3 8 1 5"):
        recorded_of("Dynamic batch", n=3)
    with pytest.raises(LabError, match="no recorded 'c\\+\\+ launch'.\n.*Recorded are: Dynamic batch"):
        recorded_of("c++ launch")


# ---- the timeline ------------------------------------------------------------------------------

class Stamps:
    """A device buffer of the made-up machine."""
    ptr, nbytes = 64, 0
    freed = False

    def __init__(self, size, dtype):
        self.values = np.zeros(size, dtype)

    def free(self):
        self.freed = True


@pytest.fixture
def clock(machine, monkeypatch):
    monkeypatch.setattr(t, "empty", Stamps)
    monkeypatch.setattr(t, "to_host", lambda stamps: stamps.values.copy())
    machine.use("gpu")
    return machine


def stream_run(stamps, kernels):
    for i in range(kernels):
        stamps.values[2 * i], stamps.values[2 * i + 1] = 5000 + 8000 * i, 5000 + 8000 * i + 320


def graph_run(stamps, kernels):
    for i in range(kernels):
        stamps.values[2 * i], stamps.values[2 * i + 1] = 9000 + 960 * i, 9000 + 960 * i + 320


def test_a_timeline_starts_at_its_first_kernel_and_comes_back_from_its_recording(clock, monkeypatch):
    monkeypatch.setenv("LABKIT_RECORD", str(clock.folder))
    out = t.timeline("gaps", {"stream": stream_run, "graph": graph_run}, kernels=4)
    assert out.starts["graph"] == [0, 960, 1920, 2880] and out.ends["graph"][-1] == 3200
    assert (out.gap("stream"), out.gap("graph"), out.total("graph")) == (8.0, 0.96, 3.2)
    assert "4 kernels, one every 0.96 µs" in str(out)
    clock.use("sim")
    again = t.timeline("gaps", {"stream": stream_run, "graph": graph_run}, kernels=4)
    assert again.starts == out.starts and again.ends == out.ends and again.provenance.how == "recorded"
    assert t.timeline("gaps", {"stream": stream_run, "graph": graph_run}, kernels=5).missing


def test_a_kernel_that_left_no_stamp_is_an_error(clock):
    def forgets(stamps, kernels):
        graph_run(stamps, kernels - 1)
    with pytest.raises(LabError, match="1 of 4 kernels left no stamp.*number 3"):
        t.timeline("gaps", {"graph": forgets}, kernels=4)


def test_the_stamp_kernel_has_no_twin():
    assert t.stamp.twin is None and "%globaltimer" in t.stamp.source


# ---- predict -----------------------------------------------------------------------------------

def test_no_guess_asks_and_does_not_wait(capsys):
    guess = predict("How long?", None)
    assert guess.guess is None and "How long?" in capsys.readouterr().out
    assert "no guess" in guess.against(3.0)


@pytest.mark.parametrize("guess, words", [(5, "8 times too little"), (400, "10 times too much"), (41, "close")])
def test_a_guess_is_compared_in_words(guess, words, capsys):
    assert words in predict("How long?", guess).against(m.Stat(40.0, 39.0, 41.0, 30))
    assert "40 µs" in capsys.readouterr().out


@pytest.mark.parametrize("guess", ["5", True, -1, float("nan"), float("inf"), [5]])
def test_nonsense_is_no_guess(guess):
    with pytest.raises(LabError, match="a guess"):
        predict("How long?", guess)


# ---- what could stand for something else ---------------------------------------------------------------

def test_values_that_are_never_passed_are_no_part_of_the_experiment(machine):
    out = m.measure("x", {"a": in_one}, vary={"batch": [3, 8, 1, 5]}, repeat=2)
    assert out.params["batch"] == "varies: 3 8" and out.vary == {"batch": [3, 8]}


def test_a_measured_figure_stays_as_it_was_measured(recorded):
    for figures in (recorded[2].e2e, recorded[2].cpu, recorded[2].stages, recorded[2].stages["stream"]):
        for change in (lambda: figures.__setitem__("graph", 1.0), lambda: figures.update(graph=1.0), lambda: figures.setdefault("other", 1.0)):
            with pytest.raises(LabError, match="no place and no date"):
                change()


def test_an_async_function_is_refused_since_calling_it_does_nothing(machine):
    async def waits():
        pass

    async def yields():
        yield "launch"
    for fn in (waits, yields):
        with pytest.raises(LabError, match="async def"):
            m.measure("x", {"a": fn})


def test_a_refusal_is_heard_as_a_code_alone_and_in_a_list_too():
    from labkit import cudart

    def alone():
        return cudart.cudaFree(12345)[0]

    def listed():
        return [cudart.cudaGetDevice(), cudart.cudaFree(12345)]
    for fn in (alone, listed):
        with pytest.raises(LabError, match="refused"):
            m.measure("x", {"a": fn})


def test_what_a_wrapper_a_namespace_an_enum_or_a_twin_of_the_name_holds_counts():
    import contextlib
    from types import SimpleNamespace

    def context(count):
        return contextlib.contextmanager(cell(f"def work():\n    for _ in range({count}):\n        pass\n    yield\n")["work"])

    def level(value):
        return enum.Enum("Level", {"A": value}, module="lesson").A

    def twin(n):
        return cell(f"def work():\n    return {n}\n")["work"]
    source = "def f():\n    return X\n"
    for one, other in ((context(1), context(100)), (level(1), level(2)), (SimpleNamespace(inner=SimpleNamespace(n=1)), SimpleNamespace(inner=SimpleNamespace(n=2)))):
        assert digest_of(source, X=one) == digest_of(source, X=one) != digest_of(source, X=other)
    first, second = twin(1), twin(2)
    both = "def f():\n    return A, B, C\n"
    assert digest_of(both, A=first, B=second, C=first) != digest_of(both, A=first, B=second, C=second)


def test_code_that_uses_what_holds_itself_is_an_error_that_says_so():
    endless = []
    endless.append(endless)
    with pytest.raises(LabError, match="holds itself"):
        digest_of("def f():\n    return L\n", L=endless)
