"""UpdateRaftVoter (key 82): a voter tells the leader its endpoints and raft version (KIP-853)."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uint16, uuid


class UpdateRaftVoterRequest(
    Message, api_key=82, versions="0", flexible="0+", listeners="controller"
):
    cluster_id: string | None = field()
    current_leader_epoch: int32 = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()
    listeners: list[Listener] = field()
    k_raft_version_feature: KRaftVersionFeature = field()


class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


class KRaftVersionFeature(Struct):
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


class UpdateRaftVoterResponse(Message, api_key=82, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    current_leader: CurrentLeader = field(tag=0)


class CurrentLeader(Struct):
    leader_id: int32 = field(default=-1)
    leader_epoch: int32 = field(default=-1)
    host: string = field()
    port: int32 = field()
