"""Who runs what when several processes share the tests.

What takes long comes first, so that no worker is left with it when the others have nothing more
to do. All tests of pipelines go to one of them: they share a Spark session, which takes longer to
start than to use, and two at a time would be in each other's way.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

PIPELINES = "tests/spark/"
LONG = (
    PIPELINES,
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


class LongestFirst(LoadFileScheduling):
    """Each file goes to one worker, and so do all pipelines."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests, that is

    def _split_scope(self, nodeid: str) -> str:
        return PIPELINES if nodeid.startswith(PIPELINES) else super()._split_scope(nodeid)


def turn(item: pytest.Item) -> int:
    """The place of a test in the order."""
    found = (place for place, start in enumerate(LONG) if item.nodeid.startswith(start))
    return next(found, len(LONG))
