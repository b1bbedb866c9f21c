"""Records of `__share_group_state`: the delivery state of share partitions.

`api_key` is the record's type: the int16 before a key, which pairs it with the value.
"""

from __future__ import annotations

from barnabas.wire.messages.share_group_state import StateBatch
from barnabas.wire.schema import Message, field, int32, int64, string, uuid


class ShareSnapshotKey(Message, api_key=0, versions="0", flexible="none"):
    group_id: string = field()
    topic_id: uuid = field()
    partition: int32 = field()


class ShareSnapshotValue(Message, api_key=0, versions="0"):
    snapshot_epoch: int32 = field()
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()
    delivery_complete_count: int32 = field(tag=0, default=-1)
    create_timestamp: int64 = field()
    write_timestamp: int64 = field()
    state_batches: list[StateBatch] = field()


class ShareUpdateKey(Message, api_key=1, versions="0", flexible="none"):
    group_id: string = field()
    topic_id: uuid = field()
    partition: int32 = field()


class ShareUpdateValue(Message, api_key=1, versions="0"):
    snapshot_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()
    delivery_complete_count: int32 = field(tag=0, default=-1)
    state_batches: list[StateBatch] = field()
