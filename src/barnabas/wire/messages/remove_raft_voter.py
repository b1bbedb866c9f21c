"""RemoveRaftVoter (key 81): remove a voter from the metadata quorum (KIP-853)."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, int16, int32, string, uuid


class RemoveRaftVoterRequest(
    Message, api_key=81, versions="0", flexible="0+", listeners="controller broker"
):
    cluster_id: string | None = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()


class RemoveRaftVoterResponse(Message, api_key=81, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
