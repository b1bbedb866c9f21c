"""Who runs what when several processes share the tests.

What takes long comes first, so that no worker is left with it when the others have nothing more
to do. What shares a Spark session stays together: it takes longer to start than to use.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

LONG = (
    "tests/spark/exactly_once/",
    "tests/spark/",
    "tests/cluster/",
    "tests/testing/",
    "tests/simulation/",
    "tests/cli/",
    "tests/examples/",
    "tests/registry/",
    "tests/replication/",
    "tests/conformance/",
    "tests/client/",
)
"""The longest first."""

APART = ("tests/spark/exactly_once/", "tests/spark/cluster/")
"""Of the tests of Spark, those whose sessions are in processes of their own."""


class LongestFirst(LoadFileScheduling):
    """Each file goes to one worker, and so do all that share a Spark session."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests, that is

    def _split_scope(self, nodeid: str) -> str:
        is_shared = nodeid.startswith("tests/spark/") and not nodeid.startswith(APART)
        return "tests/spark" if is_shared else super()._split_scope(nodeid)


def turn(item: pytest.Item) -> int:
    """The place of a test in the order."""
    found = (place for place, start in enumerate(LONG) if item.nodeid.startswith(start))
    return next(found, len(LONG))
