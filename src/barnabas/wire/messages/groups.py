"""The APIs that list, describe and delete groups.

DescribeGroups (key 15): state and members of classic groups.
v1 throttling; v3 authorized operations; v4 static members; v5 flexible; v6 GROUP_ID_NOT_FOUND with
a message instead of a dead group.

ListGroups (key 16): the groups a broker coordinates.
v1 throttling; v3 flexible; v4 states, and a filter by them; v5 types, and a filter by them.

DeleteGroups (key 42): delete empty groups.
v2 flexible; v3 error messages.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+", listeners="broker"):
    groups: list[string] = field()
    include_authorized_operations: bool = field("3+")


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    groups: list[DescribedGroup] = field()


class DescribedGroup(Struct):
    error_code: int16 = field()
    error_message: string | None = field("6+", default=None)
    group_id: string = field()
    group_state: string = field()
    protocol_type: string = field()
    protocol_data: string = field()
    members: list[DescribedGroupMember] = field()
    authorized_operations: int32 = field("3+", default=-(2**31))


class DescribedGroupMember(Struct):
    member_id: string = field()
    group_instance_id: string | None = field("4+", default=None, ignorable=True)
    client_id: string = field()
    client_host: string = field()
    member_metadata: bytes = field()
    member_assignment: bytes = field()


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


class DeleteGroupsRequest(Message, api_key=42, versions="0-3", flexible="2+", listeners="broker"):
    groups_names: list[string] = field()


class DeleteGroupsResponse(Message, api_key=42, versions="0-3", flexible="2+"):
    throttle_time_ms: int32 = field()
    results: list[DeletableGroupResult] = field()


class DeletableGroupResult(Struct):
    group_id: string = field()
    error_code: int16 = field()
    error_message: string | None = field("3+", default=None, ignorable=True)
