"""Where a sink continues."""

from collections.abc import Mapping, Sequence

import pytest

from barnabas.connect import ConfigDef, SinkConnector, SinkWriter, WriteContext
from barnabas.connect.execution import committer
from barnabas.connect.execution.committer import SinkCommitter

FIRST, SECOND = ("t", 0), ("t", 1)


class StubSink(SinkConnector):
    kept: Mapping[tuple[str, int], int] | None = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def open(self, context: WriteContext) -> SinkWriter:
        raise NotImplementedError

    def committed_positions(
        self, partitions: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], int] | None:
        return self.kept


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (None, {FIRST: 5, SECOND: 6}),
        ({}, {FIRST: 5, SECOND: 6}),
        ({FIRST: 9}, {FIRST: 9, SECOND: 6}),
        ({FIRST: 9, SECOND: 1}, {FIRST: 9, SECOND: 1}),
    ],
)
def test_the_offsets_of_the_group_are_used_where_no_position_is_kept_with_the_data(
    monkeypatch: pytest.MonkeyPatch,
    kept: Mapping[tuple[str, int], int] | None,
    expected: Mapping[tuple[str, int], int],
) -> None:
    """A worker of Kafka has written the partition before, or the sink kept no positions then."""
    group = {FIRST: 5, SECOND: 6}
    monkeypatch.setattr(
        committer,
        "group_offsets",
        lambda admin, name, partitions: {key: group[key] for key in partitions},
    )
    sink = StubSink()
    sink.kept = kept
    assert SinkCommitter(sink, "g", "id", {}, {}).committed([FIRST, SECOND]) == expected
