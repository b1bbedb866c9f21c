"""The bytes of a message on their way out, with the places where file contents belong."""

from typing import Protocol, TypeAlias


class Region(Protocol):
    """A stretch of record bytes that lies elsewhere, in a segment file, and is sent from there."""

    @property
    def size_bytes(self) -> int: ...


Records: TypeAlias = bytes | bytearray | memoryview | Region
"""What a `records` field holds: a view of the frame when read, any of these when written."""


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
        """What the peer will receive: these bytes and the regions among them."""
        return len(self) + sum(region.size_bytes for _, region in self.regions)
