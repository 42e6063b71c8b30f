"""memory_log(): what CUDA counts, read at any moment, kept as it was, and never at the cost of a capture."""
import concurrent.futures
import dataclasses
import importlib
import json

import numpy as np
import pytest

from labkit import backend, cudart, graph, kernels, launch, memory_log, ok, recordings, to_device
from labkit.errors import LabError

ml = importlib.import_module("labkit.memory_log")
MIB = 2 ** 20
MODES = ["Global", "ThreadLocal", "Relaxed"]


def mode(name):
    return getattr(cudart.cudaStreamCaptureMode, f"cudaStreamCaptureMode{name}")


@pytest.fixture
def stream():
    stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    yield stream
    ok(cudart.cudaStreamDestroy(stream))


@pytest.fixture
def pool():
    props = cudart.cudaMemPoolProps()
    props.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    props.location.type = cudart.cudaMemLocationType.cudaMemLocationTypeDevice
    pool = ok(cudart.cudaMemPoolCreate(props))
    yield pool
    ok(cudart.cudaMemPoolDestroy(pool))


@pytest.fixture
def counted(monkeypatch):
    """What the made-up counters say: {name: (used, used_high, reserved, reserved_high[, threshold])}, in bytes."""
    values = {"graph": (0, 0, 0, 0), "pool": (0, 0, 0, 0, 0), "other": (0, 0, 0, 0, 2 ** 64 - 1)}
    monkeypatch.setattr(ml, "_graph_memory", lambda device: ml.Counters(*values["graph"]))
    monkeypatch.setattr(ml, "_pool", lambda name, pool: ml.Counters(*values[name]))
    return values


def handle():
    return ok(cudart.cudaDeviceGetDefaultMemPool(0))


# ---- what CUDA counts ----------------------------------------------------------------------------

def test_graph_memory_is_counted_from_the_first_launch_to_the_trim(stream):
    ok(cudart.cudaDeviceSynchronize())
    ok(cudart.cudaDeviceGraphMemTrim(0))
    log = memory_log()
    start = log("start")["graph"]
    ok(cudart.cudaStreamBeginCapture(stream, mode("Global")))
    ok(cudart.cudaFreeAsync(ok(cudart.cudaMallocAsync(20 * MIB, stream)), stream))
    captured = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(captured, 0))
    assert log("instantiated")["graph"] == start
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    launched = log("launched")["graph"]
    assert launched.used - start.used == launched.reserved - start.reserved == 32 * MIB
    assert launched.used_high >= launched.used and launched.reserved_high >= launched.reserved and launched.threshold is None
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(captured))
    assert log("destroyed")["graph"].reserved == launched.reserved
    ok(cudart.cudaDeviceGraphMemTrim(0))
    assert log("trimmed")["graph"].reserved == start.reserved
    assert [sample.label for sample in log.samples] == ["start", "instantiated", "launched", "destroyed", "trimmed"]


def test_a_pool_is_counted_in_bytes_used_and_steps_reserved(stream, pool):
    log = memory_log(mine=pool)
    assert log("new")["mine"] == ml.Counters(0, 0, 0, 0, 0)
    block = ok(cudart.cudaMallocFromPoolAsync(5 * MIB, pool, stream))
    assert log("lent")["mine"] == ml.Counters(5 * MIB, 5 * MIB, 32 * MIB, 32 * MIB, 0)
    ok(cudart.cudaFreeAsync(block, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    assert log("returned")["mine"] == ml.Counters(0, 5 * MIB, 0, 32 * MIB, 0)


# ---- beside a capture ----------------------------------------------------------------------------

@pytest.mark.parametrize("where", ["same", "other"])
@pytest.mark.parametrize("name", MODES)
def test_a_sample_leaves_an_open_capture_as_it_was(stream, pool, name, where):
    y, log = to_device(np.zeros(4, np.float32)), memory_log(pool=pool)
    ok(cudart.cudaStreamBeginCapture(stream, mode(name)))
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        sample = log("in the capture") if where == "same" else thread.submit(log, "in the capture").result()
    assert sample["pool"].used == 0 and graph.capture_state(stream).status == "Active"
    memory_log(pool=pool)
    ok(launch(stream, kernels.fill, 1, 4, y, 2.0, 4))
    captured = ok(cudart.cudaStreamEndCapture(stream))
    assert graph.kinds(captured) == ["Kernel", "Kernel"]
    ok(cudart.cudaGraphDestroy(captured))
    y.free()


def test_the_same_reading_without_the_log_breaks_the_capture(stream, pool):
    ok(cudart.cudaStreamBeginCapture(stream, mode("Global")))
    code, _ = cudart.cudaMemPoolGetAttribute(pool, cudart.cudaMemPoolAttr.cudaMemPoolAttrUsedMemCurrent)
    assert int(code) == 900 and graph.capture_state(stream).status == "Invalidated"
    assert int(cudart.cudaStreamEndCapture(stream)[0]) == 901


@pytest.mark.parametrize("name", MODES)
def test_the_threads_own_mode_is_what_it_was(monkeypatch, pool, name):
    log = memory_log(pool=pool)
    before = ok(cudart.cudaThreadExchangeStreamCaptureMode(mode(name)))
    try:
        log("one")
        monkeypatch.setattr(ml, "_pool", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            log("two")
    finally:
        assert ok(cudart.cudaThreadExchangeStreamCaptureMode(before)) == mode(name)


# ---- samples -------------------------------------------------------------------------------------

def test_a_sample_stays_as_it_was_and_the_log_grows(counted):
    log = memory_log(pool=handle())
    first, kept = log("one"), log.samples
    counted["graph"] = (32 * MIB,) * 4
    second = log("two")
    assert first["graph"].used == 0 and second["graph"].used == 32 * MIB and kept == (first,) and log.samples == (first, second)
    for change in (lambda: setattr(first, "label", "three"), lambda: setattr(first["graph"], "used", 5)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    with pytest.raises(TypeError):
        first.counters["graph"] = second["graph"]
    with pytest.raises(AttributeError):
        log.samples = ()


def test_a_sample_knows_the_graph_memory_and_its_pools_only(counted):
    sample = memory_log(pool=handle())("one")
    with pytest.raises(LabError, match="It has: graph, pool"):
        sample["graph memory"]
    assert repr(sample) == "one: graph memory 0 of 0 MiB, pool 0 of 0 MiB (used of reserved)"


@pytest.mark.parametrize("label", [None, 5, b"bytes", "", "  ", ["text"]])
def test_a_label_is_text(counted, label):
    log = memory_log()
    with pytest.raises(LabError, match="label"):
        log(label)
    assert log.samples == ()


@pytest.mark.parametrize("pools, words", [
    ({"graph": 5}, "stands for the graph memory"), ({" ": 5}, "stands for the graph memory"), ({"pool": None}, "A pool is a cudaMemPool_t"),
    ({"pool": 64}, "A pool is a cudaMemPool_t"), ({"pool": (0, 1)}, "A pool is a cudaMemPool_t"), ({"pool": "null"}, "A pool is a cudaMemPool_t"),
    ({"pool": cudart.cudaMemPool_t()}, "A pool is a cudaMemPool_t"), ({"pool": cudart.cudaStream_t(64)}, "A pool is a cudaMemPool_t")])
def test_what_is_no_pool_is_refused(counted, pools, words):
    with pytest.raises(LabError, match=words):
        memory_log(**pools)


def test_a_pool_needs_a_name(counted):
    with pytest.raises(LabError, match=r"memory_log\(pool=pool\)"):
        memory_log(handle())


def test_a_pool_that_is_gone_is_named_and_nothing_is_kept(monkeypatch, pool):
    log = memory_log(mine=pool)
    log("one")
    monkeypatch.setattr(ml.cudart, "cudaMemPoolGetAttribute", lambda *args: (cudart.cudaError_t.cudaErrorInvalidValue, None))
    for ask in (lambda: log("two"), lambda: memory_log(mine=pool)):
        with pytest.raises(LabError, match="pool 'mine' can't be read") as caught:
            ask()
        assert int(caught.value.code) == 1
    assert len(log.samples) == 1


def test_a_log_is_made_by_memory_log_alone():
    with pytest.raises(LabError, match="made by hand"):
        ml.MemoryLog({})


# ---- words ---------------------------------------------------------------------------------------

def test_a_log_reads_as_a_table_and_carries_its_data(counted):
    log = memory_log(pool=handle(), other=handle())
    assert "no sample yet" in repr(log)
    log("before")
    counted.update(graph=(32 * MIB, 64 * MIB, 32 * MIB, 96 * MIB), pool=(4096, 4096, 32 * MIB, 32 * MIB, 48 * MIB))
    log("after\nthe launch")
    heads, kinds, before, after, where = repr(log).splitlines()
    assert heads.split() == ["graph", "memory", "pool", "other"] and kinds.split().count("reserved") == 3
    assert before.split() == ["before", *["0", "(0)"] * 4, "0", *["0", "(0)"] * 2, "no", "limit"]
    assert after.startswith("after the launch") and "32 (64)" in after and "32 (96)" in after and "0.00391 (0.00391)" in after and " 48 " in after
    assert where == log.provenance
    data = log._repr_mimebundle_()["application/vnd.labkit+json"]
    assert data["samples"][1]["counters"]["pool"] == {"used": 4096, "used_high": 4096, "reserved": 32 * MIB, "reserved_high": 32 * MIB, "threshold": 48 * MIB}
    assert data["memory_log"] == ["graph", "pool", "other"] and json.loads(json.dumps(data)) == data


def test_a_log_says_who_counted(counted):
    assert memory_log().provenance == (str(recordings.here()) if backend.name == "gpu" else "counted by the simulator, in the steps of an H200")
