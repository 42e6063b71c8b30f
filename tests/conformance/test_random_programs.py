"""Random programs: the generator makes valid ones, the simulator is steady, and a GPU agrees with it."""
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit import sim
from labkit.backend import backend
from labkit.sim import runtime as simulated
from tests.conformance import random_programs
from tests.conformance.random_programs import LONGEST, pack, program, run, settled, shrink, sources, unpack

QUIET = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


@given(st.randoms(use_true_random=False))
@settings(QUIET, max_examples=50)
def test_a_program_is_written_and_read_back(rng):
    ops = program(rng)
    assert len(ops) <= LONGEST and unpack(pack(ops)) == ops if ops else True


@given(st.randoms(use_true_random=False))
@settings(QUIET, max_examples=50)
def test_the_simulator_answers_the_same_again(rng):
    ops = program(rng)
    assert settled(run(simulated, ops)) == settled(run(simulated, ops))


@given(st.randoms(use_true_random=False))
@settings(QUIET, max_examples=100)
def test_no_program_raises_on_the_simulator(rng):
    answers = run(simulated, program(rng))
    assert not [one for one in answers if isinstance(one, list) and one and one[0] in ("raised", "hung")]


def test_a_launch_reads_only_what_is_ordered_before_it():
    ops = [["launch", 0, 0], ["launch", 0, 0], ["follow", 0, 1, 0], ["launch", 0, 1], ["begin", 0, 0, "Global"], ["launch", 0, 0]]
    assert sources(ops) == [None, 0, None, 1, None, None]


# Programs beyond those kept, shrunk, with what an H200 answered: rules of memory that no other recording shows.
ANSWERED = {
    "take 0 20; give 0 2; take 0 8; cuda_free 0 0; counters 0": [[0, 0], 0, [0, 0], 0, [[0, 0, 0, 0], [8, 20, 32, 32]]],
    "take 0 20; take 0 40; take 0 20; give 0 2; give 0 2; take 0 20": [[0, 0], [0, 20], [0, 60], 0, 0, [0, 60]],
    "memory_graph 0 a20,-a; instantiate 0 -1; memory_graph 0 a1,b40; destroy_graph 0 0; launch_graph 0 0; destroy_executable 0 0; "
    "memory_graph 0 a20,b1,c40,-a,-b,-c":
        [[0, 0, 0, 0, [0]], 0, [0, 0, 0, 0, [0, 1]], 0, 0, [1, 0], [0, 0, 0, 0, 0, 0, 0, 0, [0, 20, 128]]],
    "memory_graph 0 a20,b40,-a,-b; instantiate 0 -1; launch_graph 0 -1; destroy_executable 0 3; instantiate 0 0; launch_graph 0 0; counters 0":
        [[0, 0, 0, 0, 0, 0, [0, 20]], 0, 0, [1, 1, 0], 0, 0, [[64, 64, 96, 96], [0, 0, 0, 0]]],
}


@pytest.mark.parametrize("text", ANSWERED)
def test_the_simulator_answers_what_the_gpu_answered_to_a_shrunk_program(text):
    assert settled(run(simulated, unpack(text)))[:len(unpack(text))] == ANSWERED[text]


def test_shrinking_leaves_what_matters():
    ops = program(random.Random(5), 30)
    ops = [*ops[:20], ["malloc", 0], *ops[20:]]
    assert shrink(ops, lambda fewer: ["malloc", 0] in fewer) == [["malloc", 0]]


@pytest.mark.skipif(backend.name != "gpu", reason="needs a GPU")
@given(st.randoms(use_true_random=False))
@settings(deadline=None, database=None, max_examples=300, suppress_health_check=list(HealthCheck))
def test_the_gpu_and_the_simulator_agree(rng):
    from cuda.bindings import runtime
    before = sim.line()
    sim.set_line(runtime.cudaRuntimeGetVersion()[1] // 1000)
    try:
        ops = program(rng)
        assert settled(run(runtime, ops)) == settled(run(simulated, ops)), pack(ops)
    finally:
        sim.set_line(before)
