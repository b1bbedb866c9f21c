"""ListGroups (key 16): the groups a broker coordinates.

v1 throttling; v3 flexible; v4 states, and a filter by them; v5 types, and a filter by them.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible="3+", listeners="broker"):
    states_filter: list[string] = field("4+")
    types_filter: list[string] = field("5+")


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
    groups: list[ListedGroup] = field()


class ListedGroup(Struct):
    group_id: string = field()
    protocol_type: string = field()
    group_state: string = field("4+", ignorable=True)
    group_type: string = field("5+", ignorable=True)
