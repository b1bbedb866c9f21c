"""The schedule of tests on several processes.

Slow tests run first, so that no worker is left with them at the end. All tests of Spark go to one
worker: they share a session, which takes longer to start than to use.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

SPARK_TESTS = "tests/spark/"
LONGEST_FIRST = (
    SPARK_TESTS,
    "tests/cluster/",
    "tests/documents/",
    "tests/testing/",
    "tests/simulation/",
    "tests/cli/",
    "tests/examples/",
    "tests/packaging/",
    "tests/registry/",
    "tests/replication/",
    "tests/conformance/",
    "tests/client/",
)
"""Slow directories, the slowest first."""


class LongestFirst(LoadFileScheduling):
    """Runs each file on one worker, and all tests of Spark on one worker."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # would order by the number of tests

    def _split_scope(self, nodeid: str) -> str:
        return SPARK_TESTS if nodeid.startswith(SPARK_TESTS) else super()._split_scope(nodeid)


def scheduling_rank(item: pytest.Item) -> int:
    """Returns the position of a test in the order."""
    ranks = (rank for rank, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start))
    return next(ranks, len(LONGEST_FIRST))
