"""Records of raft: control records of the metadata log, and the quorum state file.

A control record's body carries its own version in its first field as well. The structs named Voter
in Kafka are `LeaderChangeVoter`, `Voter` (of VotersRecord) and `QuorumStateVoter` here.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uint16, uuid


class LeaderChangeMessage(Message, versions="0-1"):
    version: int16 = field()
    leader_id: int32 = field()
    voters: list[LeaderChangeVoter] = field()
    granting_voters: list[LeaderChangeVoter] = field()


class LeaderChangeVoter(Struct):
    voter_id: int32 = field()
    voter_directory_id: uuid = field("1+")


class SnapshotHeaderRecord(Message, versions="0"):
    version: int16 = field()
    last_contained_log_timestamp: int64 = field()


class SnapshotFooterRecord(Message, versions="0"):
    version: int16 = field()


class KRaftVersionRecord(Message, versions="0"):
    version: int16 = field()
    k_raft_version: int16 = field()


class VotersRecord(Message, versions="0"):
    version: int16 = field()
    voters: list[Voter] = field()


class Voter(Struct):
    voter_id: int32 = field()
    voter_directory_id: uuid = field()
    endpoints: list[Endpoint] = field()
    k_raft_version_feature: KRaftVersionFeature = field()


class Endpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


class KRaftVersionFeature(Struct):
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


class QuorumStateData(Message, versions="0-1"):
    cluster_id: string = field("0")
    leader_id: int32 = field(default=-1)
    leader_epoch: int32 = field(default=-1)
    voted_id: int32 = field(default=-1)
    voted_directory_id: uuid = field("1+")
    applied_offset: int64 = field("0")
    current_voters: list[QuorumStateVoter] | None = field("0")


class QuorumStateVoter(Struct):
    voter_id: int32 = field()
