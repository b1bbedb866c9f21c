"""AddRaftVoter (key 80): add a voter to the metadata quorum (KIP-853).

v1 may respond before the new voter set is committed.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uint16, uuid


class AddRaftVoterRequest(
    Message, api_key=80, versions="0-1", flexible="0+", listeners="controller broker"
):
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


class AddRaftVoterResponse(Message, api_key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
