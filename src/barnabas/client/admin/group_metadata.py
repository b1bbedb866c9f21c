"""Groups in the words of `list_groups`, which is older than consumer groups' own calls."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, raise_failure
from barnabas.client.admin.metadata import BrokerMetadata, waiting
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest


@dataclass(slots=True, eq=False)
class GroupMember:
    """A member; what it said and was given are bytes that its protocol explains."""

    id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    metadata: bytes | None = None
    assignment: bytes | None = None


@dataclass(slots=True, eq=False, repr=False)
class GroupMetadata:
    """A group of any protocol type, and the broker that coordinates it."""

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
    """A group in a list, in the broker's words: "Classic", "Consumer", "Share" and the like."""

    group_id: str
    type: str
    protocol_type: str
    state: str


class GroupMetadataCalls(Calls):
    def list_group_listings(
        self, *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, list[GroupListing]]:
        """The groups of every type, without their members."""
        return self._list_group_listings(self._deadline(request_timeout))

    async def _list_group_listings(self, deadline: Deadline) -> list[GroupListing]:
        told = await asyncio.gather(
            *(
                self._routes.ask(ListGroupsRequest(), broker, deadline=deadline)
                for broker in await self._routes.brokers(deadline)
            )
        )
        for listed in told:
            raise_failure(listed.error_code)
        return [
            GroupListing(group.group_id, group.group_type, group.protocol_type, group.group_state)
            for listed in told
            for group in listed.groups
        ]

    def list_groups(
        self, group: str | None = None, timeout: float = UNSET
    ) -> Coroutine[Any, Any, list[GroupMetadata]]:
        """One group, or all that there are."""
        return self._list_groups(group, waiting(timeout))

    async def _list_groups(self, group: str | None, deadline: Deadline) -> list[GroupMetadata]:
        nodes = await self._routes.nodes(deadline)
        brokers = [
            BrokerMetadata(node.id, node.host, node.port, node.rack) for node in nodes.values()
        ]
        found = await asyncio.gather(
            *(self._groups_of(broker, group, deadline) for broker in brokers)
        )
        return [each for groups in found for each in groups]

    async def _groups_of(
        self, broker: BrokerMetadata, wanted: str | None, deadline: Deadline
    ) -> list[GroupMetadata]:
        listed = await self._routes.ask(ListGroupsRequest(), broker.id, deadline=deadline)
        raise_failure(listed.error_code)
        ids = [group.group_id for group in listed.groups if wanted in (None, group.group_id)]
        if not ids:
            return []
        request = DescribeGroupsRequest(groups=ids)
        described = await self._routes.ask(request, broker.id, deadline=deadline)
        return [_metadata(group, broker) for group in described.groups]


def _metadata(group: DescribedGroup, broker: BrokerMetadata) -> GroupMetadata:
    is_gone = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    is_failed = group.error_code and not is_gone
    return GroupMetadata(
        broker,
        group.group_id,
        told_by_broker(group.error_code, group.error_message) if is_failed else None,
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
