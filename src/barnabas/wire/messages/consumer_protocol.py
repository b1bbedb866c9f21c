"""The data that members of a classic consumer group exchange in JoinGroup and SyncGroup.

The coordinator forwards them without reading them; their version precedes them as an int16.
v1 owned partitions; v2 generation; v3 rack.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int32, string


class ConsumerProtocolSubscription(Message, versions="0-3", flexible="none"):
    topics: list[string] = field()
    user_data: bytes | None = field(default=None)
    owned_partitions: list[TopicPartition] = field("1+", ignorable=True)
    generation_id: int32 = field("2+", default=-1, ignorable=True)
    rack_id: string | None = field("3+", default=None, ignorable=True)


class TopicPartition(Struct):
    topic: string = field()
    partitions: list[int32] = field()


class ConsumerProtocolAssignment(Message, versions="0-3", flexible="none"):
    assigned_partitions: list[TopicPartition] = field()
    user_data: bytes | None = field(default=None)
