"""Groups of any type: `list_groups`, which is deprecated, and listings without members."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.metadata import BrokerMetadata, deadline_after
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import raise_on_error
from barnabas.client.admin.validation import UNSET
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import DescribedGroup, DescribeGroupsRequest, ListGroupsRequest


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
            raise_on_error(response.error_code)
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
    raise_on_error(listed.error_code)
    ids = [group.group_id for group in listed.groups if group_id in (None, group.group_id)]
    if not ids:
        return []
    request = DescribeGroupsRequest(groups=ids)
    described = await admin.send(request, broker.id, deadline=deadline)
    return [_metadata(group, broker) for group in described.groups]


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
