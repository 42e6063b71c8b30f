"""The lessons notice a broken simulator too: several mutations fail a checked cell."""
import pytest

from labkit.backend import backend
from tests.conformance.mutations import MUTATIONS, broken_by
from tests.notebooks import inprocess

CELLS = "tests.notebooks.test_mutations:failing_cells"
LESSONS = ("00_start_here", "02_capture", "03_fork_and_join")       # 01 measures; its checked cells hold no rule of a capture

# Rules that a learner sees the answer of: each of these, broken, changes the text of a checked cell.
SEEN = ("legacy begins", "end anywhere", "no join needed", "no edges", "invalidated goes on", "others are free",
        "device wait is unsafe only", "all captures are blocking", "malloc is safe", "a wait forgets", "captures merge", "external is plain")


def failing_cells(mutation, limit):
    """Ids of the checked cells, at most `limit`, that print another text than was recorded."""
    failing = []
    for lesson in LESSONS:
        failing += inprocess.run_checked(f"{lesson}.ipynb")
        if len(failing) >= limit:
            break
    return failing[:limit]


@pytest.mark.skipif(backend.name == "gpu", reason="breaks the simulator, which the lessons do not run on here")
@pytest.mark.parametrize("name", SEEN, ids=lambda name: name.replace(" ", "_"))
def test_a_broken_rule_fails_a_checked_cell(name):
    mutation, = (m for m in MUTATIONS if m.name == name)
    assert broken_by(mutation, CELLS), f"no lesson shows that this no longer holds: {mutation.rule}"


@pytest.mark.skipif(backend.name == "gpu", reason="the lessons run on the simulator only without a GPU")
def test_an_unbroken_simulator_fails_no_checked_cell():
    assert broken_by(None, CELLS) == []
