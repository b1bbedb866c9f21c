"""Structs by which a response names the new leader of a partition (KIP-951)."""

from __future__ import annotations

from barnabas.wire.schema import Struct, field, int32, string


class LeaderIdAndEpoch(Struct):
    leader_id: int32 = field(default=-1)
    leader_epoch: int32 = field(default=-1)


class NodeEndpoint(Struct):
    node_id: int32 = field()
    host: string = field()
    port: int32 = field()
    rack: string | None = field(default=None)
