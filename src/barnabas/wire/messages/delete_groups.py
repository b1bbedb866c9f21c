"""DeleteGroups (key 42): delete empty groups.

v2 flexible; v3 error messages.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class DeleteGroupsRequest(Message, api_key=42, versions="0-3", flexible="2+", listeners="broker"):
    groups_names: list[string] = field()


class DeleteGroupsResponse(Message, api_key=42, versions="0-3", flexible="2+"):
    throttle_time_ms: int32 = field()
    results: list[DeletableGroupResult] = field()


class DeletableGroupResult(Struct):
    group_id: string = field()
    error_code: int16 = field()
    error_message: string | None = field("3+", default=None, ignorable=True)
