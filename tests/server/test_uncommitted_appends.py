"""The appends of a request that wait until they are committed."""

from typing import Any

from barnabas.server.uncommitted_appends import UncommittedAppends


def test_an_append_is_added_without_copying_those_before_it() -> None:
    partition: Any = "orders-0"
    appends = UncommittedAppends[int](acks=-1)
    appends.add(partition, 1, 0)
    _, waiting = appends.partitions[partition]
    appends.add(partition, 2, 1)
    assert appends.partitions[partition] == (2, [0, 1])
    assert appends.partitions[partition][1] is waiting
