"""Record bytes in several buffers, which are sent without being joined first."""

from collections.abc import Sequence
from itertools import pairwise

from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Buffer


class GatheredRecords:
    """The value of a `records` field in a request: its buffers, one after the other.

    The buffers must not change before the response arrives.
    """

    __slots__ = ("buffers", "size_bytes")

    def __init__(self, parts: Sequence[Buffer]) -> None:
        self.buffers = parts
        self.size_bytes = sum(map(len, parts))


def frame_buffers(frame: Outgoing) -> list[Buffer]:
    """Returns the buffers of a frame in the order in which they are sent."""
    if not frame.regions:
        return [frame]
    view = memoryview(frame)
    parts: list[Buffer] = [view[: frame.regions[0][0]]]
    ends = [position for position, _ in frame.regions] + [len(frame)]
    for (_, region), (begin, end) in zip(frame.regions, pairwise(ends), strict=True):
        assert isinstance(region, GatheredRecords), "requests carry no records from files"
        parts.extend(region.buffers)
        if end > begin:
            parts.append(view[begin:end])
    return parts
