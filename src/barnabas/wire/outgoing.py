"""The bytes of an encoded message, with the positions where file contents are inserted."""

from typing import Protocol, TypeAlias


class Region(Protocol):
    """Record bytes in a segment file, which are sent from there without being read."""

    @property
    def size_bytes(self) -> int: ...


Records: TypeAlias = bytes | bytearray | memoryview | Region
"""The value of a `records` field: a view of the frame when read, any of these when written."""


class Outgoing(bytearray):
    """An encoded message without its regions.

    `regions` holds, in order, the position in these bytes before which each region is sent.
    """

    __slots__ = ("regions",)

    regions: list[tuple[int, Region]]

    def __init__(self, source: bytes = b"") -> None:
        if source:
            super().__init__(source)
        self.regions = []

    @property
    def size_bytes(self) -> int:
        """The size of the message with its regions, as the peer receives it."""
        return len(self) + sum(region.size_bytes for _, region in self.regions)
