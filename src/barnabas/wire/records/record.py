"""One record as a Python object."""

from typing import NamedTuple, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]


class Record(NamedTuple):
    """A record of a batch; `value` None is a tombstone."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]
