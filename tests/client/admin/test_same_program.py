"""One program, run with either import: what comes back is the same."""

import enum
from pathlib import Path
from typing import Any

import pytest
from tests.client.admin import program
from tests.client.admin.clients import produce
from tests.confluent_modules import load_with_barnabas_imports

from barnabas.testing import Broker

PROGRAM = Path(program.__file__)

DIFFERENT = {"topic_id"}
"""What the cluster makes up anew for each run."""


@pytest.mark.filterwarnings("ignore:list_groups")
@pytest.mark.parametrize("where", ["broker", pytest.param("kafka", marks=pytest.mark.peer)])
def test_both_libraries_return_the_same(
    where: str, name: str, request: pytest.FixtureRequest
) -> None:
    served: Any = request.getfixturevalue(where)
    bootstrap = served.bootstrap_servers if isinstance(served, Broker) else served.bootstrap
    ours = load_with_barnabas_imports(PROGRAM, "tests.client.admin.program_of_ours")

    def run(module: Any) -> dict[str, Any]:
        results: dict[str, Any] = module.administer(
            bootstrap, name, lambda: produce(bootstrap, name, 5)
        )
        return results

    # Ours goes first: theirs crashes where the offsets' topic has yet to be made.
    our_results, their_results = run(ours), run(program)
    assert their_results.keys() == our_results.keys()
    for what, results in their_results.items():
        assert_same(results, our_results[what], what)


def assert_same(theirs: Any, ours: Any, where: str) -> None:
    """Everything that theirs has, ours has, down to the last attribute."""
    if isinstance(theirs, enum.Enum):
        assert (theirs.name, theirs.value) == (ours.name, ours.value), where
    elif isinstance(theirs, dict):
        mine = {str(key): value for key, value in ours.items()}
        assert {str(key) for key in theirs} == mine.keys(), where
        for key, value in theirs.items():
            assert_same(value, mine[str(key)], f"{where}, {key}")
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours), where
        for position, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            assert_same(one, other, f"{where}, {position}")
    elif type(theirs).__name__ == "KafkaError":
        assert theirs.code() == ours.code(), where
    elif attributes := _attributes(theirs):
        assert type(theirs).__name__ == type(ours).__name__, where
        for attribute in attributes:
            assert_same(
                getattr(theirs, attribute), getattr(ours, attribute), f"{where}.{attribute}"
            )
    else:
        assert theirs == ours, where


def _attributes(value: Any) -> list[str]:
    if type(value).__name__ == "TopicPartition":
        return ["topic", "partition", "offset", "metadata", "leader_epoch", "error"]
    return [name for name in getattr(value, "__dict__", ()) if name not in DIFFERENT]
