"""A broken rule of the simulator is noticed: each mutation fails a scenario."""
import pytest

from tests.conformance.mutations import MUTATIONS, broken_by

SCENARIOS = "tests.conformance.mutations:failing_scenarios"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "_"))
def test_a_broken_rule_fails_a_scenario(mutation):
    failing = broken_by(mutation, SCENARIOS)
    assert failing, f"nothing noticed that this no longer holds: {mutation.rule}"


def test_enough_rules_are_broken():
    assert len(MUTATIONS) >= 100
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    assert len({(mutation.file, mutation.old, mutation.new) for mutation in MUTATIONS}) == len(MUTATIONS)
