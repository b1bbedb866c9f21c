"""Groups: list those of any type; list, describe and delete consumer groups, remove members."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.group_descriptions import (
    WIRE_NAMES,
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ListConsumerGroupsResult,
    describe_classic_group,
    describe_consumer_group,
    parse_state,
    parse_type,
)
from barnabas.client.admin.metadata import BrokerMetadata, deadline_after
from barnabas.client.admin.model import ConsumerGroupState, ConsumerGroupType, Node
from barnabas.client.admin.requests import UNSET, AdminRequests, require_list
from barnabas.client.admin.results import Results, error_of, raise_on_error
from barnabas.client.cluster import CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, KafkaException, broker_error, error_in
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribedGroup,
    DescribeGroupsRequest,
    ListedGroup,
    ListGroupsRequest,
)

_CONSUMER_PROTOCOL_TYPES = ("consumer", "")
"""The protocol types of consumer groups; a simple group has none."""


@dataclass(slots=True, eq=False)
class GroupMember:
    """A member; the format of its metadata and assignment depends on the protocol type."""

    id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    metadata: bytes | None = None
    assignment: bytes | None = None


@dataclass(slots=True, eq=False, repr=False)
class GroupMetadata:
    """A group of any protocol type, and the broker that is its coordinator."""

    broker: BrokerMetadata | None = None
    id: str | None = None
    error: KafkaError | None = None
    state: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    members: list[GroupMember] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"GroupMetadata({self.id}{f', {self.error}' if self.error else ''})"

    def __str__(self) -> str:
        return str(self.id)


@dataclass(slots=True, frozen=True)
class GroupListing:
    """A group in a listing, with the broker's names: "Classic", "Consumer", "Share" and others."""

    group_id: str
    type: str
    protocol_type: str
    state: str


def list_group_listings(
    admin: AdminRequests, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, list[GroupListing]]:
    """Returns all groups of every type, without their members."""
    deadline = admin.deadline(request_timeout)

    async def list_on_all() -> list[GroupListing]:
        brokers = await admin.broker_ids(deadline)
        responses = await asyncio.gather(
            *(admin.send(ListGroupsRequest(), broker, deadline=deadline) for broker in brokers)
        )
        for response in responses:
            raise_on_error(response)
        return [
            GroupListing(group.group_id, group.group_type, group.protocol_type, group.group_state)
            for response in responses
            for group in response.groups
        ]

    return list_on_all()


def list_groups(
    admin: AdminRequests, group: str | None = None, timeout: float = UNSET
) -> Coroutine[Any, Any, list[GroupMetadata]]:
    """Returns one group, or all groups, with their members (deprecated).

    Use `list_consumer_groups` and `describe_consumer_groups`.
    """
    deadline = deadline_after(timeout)

    async def list_on_all() -> list[GroupMetadata]:
        nodes = (await admin.broker_nodes(deadline)).values()
        brokers = [BrokerMetadata(node.id, node.host, node.port, node.rack) for node in nodes]
        by_broker = await asyncio.gather(
            *(_groups_coordinated_by(admin, broker, group, deadline) for broker in brokers)
        )
        return [listed for groups in by_broker for listed in groups]

    return list_on_all()


async def _groups_coordinated_by(
    admin: AdminRequests, broker: BrokerMetadata, group_id: str | None, deadline: Deadline
) -> list[GroupMetadata]:
    listed = await admin.send(ListGroupsRequest(), broker.id, deadline=deadline)
    raise_on_error(listed)
    ids = [group.group_id for group in listed.groups if group_id in (None, group.group_id)]
    if not ids:
        return []
    request = DescribeGroupsRequest(groups=ids)
    described = await admin.send(request, broker.id, deadline=deadline)
    return [_metadata(group, broker) for group in described.groups]


def list_consumer_groups(
    admin: AdminRequests,
    *,
    states: set[ConsumerGroupState] | None = None,
    types: set[ConsumerGroupType] | None = None,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, ListConsumerGroupsResult]:
    """Returns the consumer groups of all brokers.

    `states` and `types` restrict them. Brokers that failed are listed in `errors` of the result.
    """
    _require_set("states", states, ConsumerGroupState)
    _require_set("types", types, ConsumerGroupType)
    request = ListGroupsRequest(
        states_filter=[WIRE_NAMES[state] for state in states or ()],
        types_filter=[WIRE_NAMES[kind] for kind in types or ()],
    )
    return _list_consumer_groups(admin, request, admin.deadline(request_timeout))


async def _list_consumer_groups(
    admin: AdminRequests, request: ListGroupsRequest, deadline: Deadline
) -> ListConsumerGroupsResult:
    brokers = await admin.broker_ids(deadline)
    by_broker = await asyncio.gather(
        *(_list_groups_of(admin, broker, request, deadline) for broker in brokers),
        return_exceptions=True,
    )
    result = ListConsumerGroupsResult([], [])
    for groups in by_broker:
        if isinstance(groups, KafkaException):
            result.errors.append(groups)
        elif isinstance(groups, BaseException):
            raise groups
        else:
            result.valid += [
                ConsumerGroupListing(
                    group.group_id,
                    not group.protocol_type,
                    parse_state(group.group_state),
                    parse_type(group.group_type),
                )
                for group in groups
                if group.protocol_type in _CONSUMER_PROTOCOL_TYPES
            ]
    return result


async def _list_groups_of(
    admin: AdminRequests, broker: int, request: ListGroupsRequest, deadline: Deadline
) -> list[ListedGroup]:
    response = await admin.send(request, broker, deadline=deadline)
    raise_on_error(response)
    groups: list[ListedGroup] = response.groups
    return groups


def describe_consumer_groups(
    admin: AdminRequests,
    group_ids: list[str],
    *,
    include_authorized_operations: bool = False,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, ConsumerGroupDescription]]:
    """Returns consumer groups of either protocol with their members, by group id.

    A group that does not exist has the state DEAD.
    """
    require_list("group_ids", group_ids, str)
    return _describe_consumer_groups(
        admin, group_ids, include_authorized_operations, admin.deadline(request_timeout)
    )


async def _describe_consumer_groups(
    admin: AdminRequests, group_ids: list[str], with_operations: bool, deadline: Deadline
) -> Results[str, ConsumerGroupDescription]:
    nodes = await admin.broker_nodes(deadline)

    async def exchange(
        node: int | None, batch: list[str]
    ) -> Mapping[str, ConsumerGroupDescription | KafkaError]:
        assert node is not None, "groups have coordinators"
        coordinator = nodes.get(node) or Node(node, "", -1)
        described = await _describe_new_protocol_groups(
            admin, coordinator, batch, with_operations, deadline
        )
        others = [group_id for group_id in batch if group_id not in described]
        if others:
            request = DescribeGroupsRequest(
                groups=others, include_authorized_operations=with_operations
            )
            response = await admin.send(request, node, deadline=deadline)
            for group in response.groups:
                described[group.group_id] = describe_classic_group(group, coordinator)
        return described

    return await admin.route_to_coordinators(CoordinatorType.GROUP, group_ids, exchange, deadline)


async def _describe_new_protocol_groups(
    admin: AdminRequests,
    coordinator: Node,
    group_ids: list[str],
    with_operations: bool,
    deadline: Deadline,
) -> dict[str, ConsumerGroupDescription | KafkaError]:
    """Returns the groups of the consumer protocol (KIP-848), without those of the classic one."""
    request = ConsumerGroupDescribeRequest(
        group_ids=group_ids, include_authorized_operations=with_operations
    )
    try:
        response = await admin.send(request, coordinator.id, deadline=deadline)
    except KafkaException as failure:
        if error_in(failure).code() != KafkaError._UNSUPPORTED_FEATURE:
            raise
        return {}
    return {
        group.group_id: describe_consumer_group(group, coordinator)
        for group in response.groups
        if group.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    }


def delete_consumer_groups(
    admin: AdminRequests, group_ids: list[str], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[str, None]]:
    """Deletes groups that have no members, with their offsets; results are by group id."""
    require_list("group_ids", group_ids, str)
    deadline = admin.deadline(request_timeout)

    async def exchange(node: int | None, batch: list[str]) -> Mapping[str, KafkaError | None]:
        request = DeleteGroupsRequest(groups_names=batch)
        response = await admin.send(request, node, deadline=deadline)
        return {group.group_id: error_of(group) for group in response.results}

    return admin.route_to_coordinators(CoordinatorType.GROUP, group_ids, exchange, deadline)


def remove_members_from_consumer_group(
    admin: AdminRequests,
    group_id: str,
    group_instance_ids: list[str] | None = None,
    *,
    reason: str | None = None,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, None]]:
    """Removes static members from a group, or all of its members if none is named.

    Results are by group instance id, or by member id for a member without one.
    """
    if group_instance_ids is not None:
        require_list("group_instance_ids", group_instance_ids, str)
    deadline = admin.deadline(request_timeout)
    return _remove_members(admin, group_id, group_instance_ids, reason, deadline)


async def _remove_members(
    admin: AdminRequests,
    group_id: str,
    instance_ids: list[str] | None,
    reason: str | None,
    deadline: Deadline,
) -> Results[str, None]:
    if instance_ids is not None:
        leaving = [
            MemberIdentity(group_instance_id=instance_id, reason=reason)
            for instance_id in instance_ids
        ]
    else:
        described = await _describe_consumer_groups(admin, [group_id], False, deadline)
        leaving = [
            MemberIdentity(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                reason=reason,
            )
            for member in described[group_id].members
        ]
    if not leaving:
        return Results({})
    request = LeaveGroupRequest(group_id=group_id, members=leaving)

    async def exchange(
        node: int | None, _: list[str]
    ) -> Mapping[str, dict[str, KafkaError | None] | KafkaError]:
        response = await admin.send(request, node, deadline=deadline)
        if response.error_code:
            return {group_id: broker_error(response.error_code)}
        return {
            group_id: {
                member.group_instance_id or member.member_id: error_of(member)
                for member in response.members
            }
        }

    by_group = await admin.route_to_coordinators(
        CoordinatorType.GROUP, [group_id], exchange, deadline
    )
    return Results(by_group[group_id])


def _require_set(name: str, items: Iterable[object] | None, kind: type) -> None:
    if items is None:
        return
    if not isinstance(items, set) or not all(isinstance(item, kind) for item in items):
        raise TypeError(f"{name} must be a set of {kind.__name__}")


def _metadata(group: DescribedGroup, broker: BrokerMetadata) -> GroupMetadata:
    is_gone = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    is_failed = group.error_code and not is_gone
    return GroupMetadata(
        broker,
        group.group_id,
        broker_error(group.error_code, group.error_message) if is_failed else None,
        "Dead" if is_gone else group.group_state,
        group.protocol_type,
        group.protocol_data,
        [
            GroupMember(
                member.member_id,
                member.client_id,
                member.client_host,
                bytes(member.member_metadata),
                bytes(member.member_assignment),
            )
            for member in group.members
        ],
    )
