"""The APIs that change the voters of the metadata quorum.

AddRaftVoter (key 80): add a voter to the metadata quorum (KIP-853).
v1 may respond before the new voter set is committed.

RemoveRaftVoter (key 81): remove a voter from the metadata quorum (KIP-853).

UpdateRaftVoter (key 82): a voter sends its endpoints and raft version to the leader (KIP-853).
"""

from __future__ import annotations

from barnabas.wire.messages.raft_records import KRaftVersionFeature
from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uint16, uuid


class AddRaftVoterRequest(Message, api_key=80, versions="0-1", listeners="controller broker"):
    cluster_id: string | None = field()
    timeout_ms: int32 = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()
    listeners: list[Listener] = field()
    ack_when_committed: bool = field("1+", default=True)


class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


class AddRaftVoterResponse(Message, api_key=80, versions="0-1"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()


class RemoveRaftVoterRequest(Message, api_key=81, versions="0", listeners="controller broker"):
    cluster_id: string | None = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()


class RemoveRaftVoterResponse(Message, api_key=81, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()


class UpdateRaftVoterRequest(Message, api_key=82, versions="0", listeners="controller"):
    cluster_id: string | None = field()
    current_leader_epoch: int32 = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()
    listeners: list[Listener] = field()
    k_raft_version_feature: KRaftVersionFeature = field()


class UpdateRaftVoterResponse(Message, api_key=82, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    current_leader: CurrentLeader = field(tag=0)


class CurrentLeader(Struct):
    leader_id: int32 = field(default=-1)
    leader_epoch: int32 = field(default=-1)
    host: string = field()
    port: int32 = field()
