"""Connects a member to the world: sends what it asks, hands over, wakes it when it is time."""

import asyncio
import logging
import math
from collections.abc import Coroutine
from typing import Any

from barnabas.client.cluster import Cluster, CoordinatorType, Deadline, Metadata
from barnabas.client.consumer.group.errors import COORDINATOR_MOVED
from barnabas.client.consumer.group.member import (
    Assign,
    AssignmentChange,
    GroupMembership,
    Lose,
    RebalanceListener,
    ReportError,
    Revoke,
    SendToGroupCoordinator,
)
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.client.errors import KafkaError, KafkaException, fail
from barnabas.client.settings import ConsumerSettings
from barnabas.wire.errors import ErrorCode

log = logging.getLogger(__name__)

REBALANCE_CONNECTION = "group"
"""The connection for what waits until all members have come: commits must not wait behind it."""


class MembershipManager:
    """A `Member` that acts: on the loop's time, through a `Cluster`, for an `Assignee`."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        assignee: RebalanceListener,
        member: GroupMembership,
    ) -> None:
        assert settings.group_id is not None
        self.member = member
        self._cluster = cluster
        self._settings = settings
        self._group_id = settings.group_id
        self._assignee = assignee
        self._loop = asyncio.get_running_loop()
        self._subscription: Subscription | None = None
        self._wanted: frozenset[str] = frozenset()
        self._complained: dict[str, ErrorCode] = {}
        self._worth_telling = {
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        if settings.group_protocol == "classic" and not settings.allow_auto_create_topics:
            # Members of the other protocol wait for a topic without a word, as librdkafka's do.
            self._worth_telling.add(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._left: list[asyncio.Future[None]] = []
        cluster.add_listener(self._heard)

    def subscribe(self, subscription: Subscription) -> None:
        self._subscription = subscription
        if subscription.patterns:
            self._cluster.add_all_topics()
        self._heard(self._cluster.metadata)

    def on_poll(self) -> None:
        self.member.on_poll(self._now_ms())
        if self.member.epoch < 0:
            self._advance()  # perhaps it only waits for that

    async def leave(self) -> None:
        """Give everything back and go. How long that takes is up to the assignee alone."""
        self._subscription = None
        self.member.leave()
        left: asyncio.Future[None] = self._loop.create_future()
        self._left.append(left)
        self._advance()
        await left

    def stop(self) -> None:
        """Do nothing more."""
        self._subscription = None
        if self._timer is not None:
            self._timer.cancel()
        for task in self._under_way:
            task.cancel()

    def _heard(self, metadata: Metadata) -> None:
        if self._subscription is None:
            return
        self._complain(self._subscription, metadata)
        with_internal = not self._settings.exclude_internal_topics
        sought = self._subscription.resolve(metadata, with_internal=with_internal)
        self.member.on_metadata(metadata)
        self.member.subscribe(sought, self._now_ms())
        self._advance()

    def _complain(self, subscription: Subscription, metadata: Metadata) -> None:
        """Tell once of each topic that cannot be consumed."""
        errors = {
            name: metadata.topics[name].error
            for name in subscription.names & metadata.topics.keys()
        }
        wrong = {name: error for name, error in errors.items() if error in self._worth_telling}
        for name, error in wrong.items():
            if self._complained.get(name) != error:
                reason = f"Subscribed topic not available: {name}: {KafkaError(error).str()}"
                self._assignee.on_error(KafkaError(error, reason))
        self._complained = wrong

    # Doing what the member wants

    def _advance(self) -> None:
        for step in self.member.advance(self._now_ms()):
            match step:
                case SendToGroupCoordinator():
                    self._begin(self._ask(step))
                case ReportError(error):
                    self._assignee.on_error(error)
                case _:
                    self._begin(self._hand_over(step))
        self._want(self.member.needed_topics)
        if self.member.needs_metadata:
            self._cluster.refresh()
        self._wake_at(self.member.next_deadline_ms)
        if self.member.has_left:
            left, self._left = self._left, []
            for each in left:
                if not each.done():
                    each.set_result(None)

    def _want(self, topics: frozenset[str]) -> None:
        if topics != self._wanted:
            self._cluster.add_topics(topics - self._wanted)
            self._cluster.remove_topics(self._wanted - topics)
            self._wanted = topics

    async def _ask(self, step: SendToGroupCoordinator) -> None:
        deadline = Deadline.after(step.timeout_ms)
        outcome: Any
        try:
            outcome = await self._response(step, deadline)
            code = outcome.error_code
        except KafkaException as failure:
            outcome = failure.args[0]
            code = outcome.code()
        if code in COORDINATOR_MOVED or code < ErrorCode.UNKNOWN_SERVER_ERROR:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
        self.member.on_response(step.request, outcome, self._now_ms())
        self._advance()

    async def _response(self, step: SendToGroupCoordinator, deadline: Deadline) -> Any:
        node_id = await self._cluster.coordinator(CoordinatorType.GROUP, self._group_id, deadline)
        timeout_ms = deadline.remaining_ms()
        if not step.waits_for_rebalance:
            return await self._cluster.send_request(step.request, node_id, timeout_ms=timeout_ms)
        answer = asyncio.ensure_future(
            self._cluster.send_request(
                step.request, node_id, timeout_ms=timeout_ms, purpose=REBALANCE_CONNECTION
            )
        )
        try:
            return await self._while_it_coordinates(node_id, answer, deadline)
        finally:
            answer.cancel()

    async def _while_it_coordinates(
        self, node_id: int, answer: asyncio.Future[Any], deadline: Deadline
    ) -> Any:
        """Wait for an answer that may take minutes, unless another coordinates by then.

        One that hangs, or is cut off, tells nobody that it does so no longer.
        """
        while True:
            await asyncio.wait([answer], timeout=self._settings.request_timeout_ms / 1000)
            if answer.done():
                return answer.result()
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
            now = await self._cluster.coordinator(CoordinatorType.GROUP, self._group_id, deadline)
            if now != node_id:
                fail(KafkaError._TRANSPORT, f"broker {now} coordinates the group now")

    async def _hand_over(self, step: AssignmentChange) -> None:
        try:
            match step:
                case Assign(partitions, incremental):
                    await self._assignee.on_partitions_assigned(partitions, incremental=incremental)
                case Revoke(partitions, incremental):
                    await self._assignee.on_partitions_revoked(partitions, incremental=incremental)
                case Lose(partitions):
                    await self._assignee.on_partitions_lost(partitions)
        except Exception:
            log.exception("group %s: %s went wrong", self._group_id, type(step).__name__)
        self.member.on_assignment_changed()
        self._advance()

    def _begin(self, act: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(act)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    # Time

    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    def _wake_at(self, time_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if time_ms < math.inf:
            self._timer = self._loop.call_at(time_ms / 1000, self._advance)
