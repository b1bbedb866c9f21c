"""Record bytes that lie in several buffers and leave from there, without being joined first."""

from collections.abc import Sequence
from itertools import pairwise

from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Buffer


class Gathered:
    """The value of a `records` field in a request: its buffers, one after the other.

    They must not change before the request is answered.
    """

    __slots__ = ("parts", "size_bytes")

    def __init__(self, parts: Sequence[Buffer]) -> None:
        self.parts = parts
        self.size_bytes = sum(map(len, parts))


def parts_of(frame: Outgoing) -> list[Buffer]:
    """All that a frame consists of, in the order in which it is sent."""
    if not frame.regions:
        return [frame]
    view = memoryview(frame)
    parts: list[Buffer] = [view[: frame.regions[0][0]]]
    ends = [position for position, _ in frame.regions] + [len(frame)]
    for (_, region), (begin, end) in zip(frame.regions, pairwise(ends), strict=True):
        assert isinstance(region, Gathered), "requests carry no records from files"
        parts.extend(region.parts)
        if end > begin:
            parts.append(view[begin:end])
    return parts
