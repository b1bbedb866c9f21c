"""Consumer groups: list, describe, delete, remove members."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from barnabas.client.admin.calls import (
    UNSET,
    Calls,
    Results,
    outcome_of,
    raise_failure,
    require_list,
)
from barnabas.client.admin.enums import ConsumerGroupState, ConsumerGroupType
from barnabas.client.admin.group_values import (
    WIRE_NAMES,
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ListConsumerGroupsResult,
    classic_group,
    consumer_group,
    state_of,
    type_of,
)
from barnabas.client.admin.model import Node
from barnabas.client.cluster import Coordinator, Deadline
from barnabas.client.errors import KafkaError, KafkaException, error_in, told_by_broker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListedGroup, ListGroupsRequest

_CONSUMERS = ("consumer", "")
"""The protocol types of consumer groups; those that only commit offsets have none."""


class GroupCalls(Calls):
    def list_consumer_groups(
        self,
        *,
        states: set[ConsumerGroupState] | None = None,
        types: set[ConsumerGroupType] | None = None,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, ListConsumerGroupsResult]:
        """The groups of all brokers, and the failures of brokers that could not be asked."""
        _require_set("states", states, ConsumerGroupState)
        _require_set("types", types, ConsumerGroupType)
        request = ListGroupsRequest(
            states_filter=[WIRE_NAMES[state] for state in states or ()],
            types_filter=[WIRE_NAMES[kind] for kind in types or ()],
        )
        return self._list_consumer_groups(request, self._deadline(request_timeout))

    async def _list_consumer_groups(
        self, request: ListGroupsRequest, deadline: Deadline
    ) -> ListConsumerGroupsResult:
        brokers = await self._routes.brokers(deadline)
        told = await asyncio.gather(
            *(self._listed(broker, request, deadline) for broker in brokers),
            return_exceptions=True,
        )
        result = ListConsumerGroupsResult([], [])
        for groups in told:
            if isinstance(groups, KafkaException):
                result.errors.append(groups)
            elif isinstance(groups, BaseException):
                raise groups
            else:
                result.valid += [
                    ConsumerGroupListing(
                        group.group_id,
                        not group.protocol_type,
                        state_of(group.group_state),
                        type_of(group.group_type),
                    )
                    for group in groups
                    if group.protocol_type in _CONSUMERS
                ]
        return result

    async def _listed(
        self, broker: int, request: ListGroupsRequest, deadline: Deadline
    ) -> list[ListedGroup]:
        response = await self._routes.ask(request, broker, deadline=deadline)
        raise_failure(response.error_code)
        groups: list[ListedGroup] = response.groups
        return groups

    def describe_consumer_groups(
        self,
        group_ids: list[str],
        *,
        include_authorized_operations: bool = False,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[str, ConsumerGroupDescription]]:
        """Groups of either protocol with their members; one that is not there is DEAD."""
        require_list("group_ids", group_ids, str)
        return self._describe_consumer_groups(
            group_ids, include_authorized_operations, self._deadline(request_timeout)
        )

    async def _describe_consumer_groups(
        self, group_ids: list[str], with_operations: bool, deadline: Deadline
    ) -> Results[str, ConsumerGroupDescription]:
        nodes = await self._routes.nodes(deadline)

        async def exchange(
            node: int | None, asked: list[str]
        ) -> Mapping[str, ConsumerGroupDescription | KafkaError]:
            assert node is not None, "groups have coordinators"
            coordinator = nodes.get(node) or Node(node, "", -1)
            described = await self._consumer_groups(coordinator, asked, with_operations, deadline)
            others = [group_id for group_id in asked if group_id not in described]
            if others:
                request = DescribeGroupsRequest(
                    groups=others, include_authorized_operations=with_operations
                )
                response = await self._routes.ask(request, node, deadline=deadline)
                for group in response.groups:
                    described[group.group_id] = classic_group(group, coordinator)
            return described

        return Results(
            await self._routes.by_coordinator(Coordinator.GROUP, group_ids, exchange, deadline)
        )

    async def _consumer_groups(
        self, coordinator: Node, group_ids: list[str], with_operations: bool, deadline: Deadline
    ) -> dict[str, ConsumerGroupDescription | KafkaError]:
        """Those that speak the newer protocol (KIP-848); of others the coordinator knows none."""
        request = ConsumerGroupDescribeRequest(
            group_ids=group_ids, include_authorized_operations=with_operations
        )
        try:
            response = await self._routes.ask(request, coordinator.id, deadline=deadline)
        except KafkaException as failure:
            if error_in(failure).code() != KafkaError._UNSUPPORTED_FEATURE:
                raise
            return {}
        return {
            group.group_id: consumer_group(group, coordinator)
            for group in response.groups
            if group.error_code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
        }

    def delete_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, Results[str, None]]:
        """Delete groups that have no members, with their offsets."""
        require_list("group_ids", group_ids, str)
        return self._delete_consumer_groups(group_ids, self._deadline(request_timeout))

    async def _delete_consumer_groups(
        self, group_ids: list[str], deadline: Deadline
    ) -> Results[str, None]:
        async def exchange(node: int | None, asked: list[str]) -> Mapping[str, KafkaError | None]:
            request = DeleteGroupsRequest(groups_names=asked)
            response = await self._routes.ask(request, node, deadline=deadline)
            return {
                group.group_id: outcome_of(group.error_code, group.error_message)
                for group in response.results
            }

        return Results(
            await self._routes.by_coordinator(Coordinator.GROUP, group_ids, exchange, deadline)
        )

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        group_instance_ids: list[str] | None = None,
        *,
        reason: str | None = None,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[str, None]]:
        """Have static members leave a group; without any named, all members it has.

        Results are by instance ids, by member ids where a member has none.
        """
        if group_instance_ids is not None:
            require_list("group_instance_ids", group_instance_ids, str)
        deadline = self._deadline(request_timeout)
        return self._remove_members(group_id, group_instance_ids, reason, deadline)

    async def _remove_members(
        self, group_id: str, instance_ids: list[str] | None, reason: str | None, deadline: Deadline
    ) -> Results[str, None]:
        if instance_ids is not None:
            leaving = [
                MemberIdentity(group_instance_id=instance_id, reason=reason)
                for instance_id in instance_ids
            ]
        else:
            described = await self._describe_consumer_groups([group_id], False, deadline)
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
            response = await self._routes.ask(request, node, deadline=deadline)
            if response.error_code:
                return {group_id: told_by_broker(response.error_code)}
            return {
                group_id: {
                    member.group_instance_id or member.member_id: outcome_of(member.error_code)
                    for member in response.members
                }
            }

        told = Results(
            await self._routes.by_coordinator(Coordinator.GROUP, [group_id], exchange, deadline)
        )
        return Results(told[group_id])


def _require_set(name: str, given: Iterable[object] | None, kind: type) -> None:
    if given is None:
        return
    if not isinstance(given, set) or not all(isinstance(each, kind) for each in given):
        raise TypeError(f"{name} must be a set of {kind.__name__}")
