"""Runs a member: performs its actions, and passes responses, metadata and time to it."""

import asyncio
import logging
import math
from collections.abc import Coroutine
from typing import Any

from barnabas.client.cluster import ClusterClient, CoordinatorType, Deadline, MetadataSnapshot
from barnabas.client.consumer.group.membership import (
    COORDINATOR_MOVED,
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
from barnabas.client.errors import KafkaError, KafkaException, client_log, fail
from barnabas.client.settings import ConsumerSettings
from barnabas.wire.errors import ErrorCode

log = logging.getLogger(__name__)

REBALANCE_CONNECTION = "group"
"""The connection for requests that wait for a rebalance: commits must not queue behind them."""


class MembershipManager:
    """Performs the actions of a `GroupMembership` on the event loop."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ConsumerSettings,
        listener: RebalanceListener,
        member: GroupMembership,
    ) -> None:
        assert settings.group_id is not None
        self.member = member
        self._cluster = cluster
        self._settings = settings
        self._group_id = settings.group_id
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._subscription: Subscription | None = None
        self._watched_topics: frozenset[str] = frozenset()
        self._reported: dict[str, ErrorCode] = {}
        self._reportable_errors = {
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        self._logged_errors: set[ErrorCode] = set()
        if not settings.allow_auto_create_topics:
            # Members of the consumer protocol wait for a topic without an error, as librdkafka's.
            is_classic = settings.group_protocol == "classic"
            errors = self._reportable_errors if is_classic else self._logged_errors
            errors.add(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._leave_waiters: list[asyncio.Future[None]] = []
        cluster.add_listener(self._on_metadata)

    def subscribe(self, subscription: Subscription) -> None:
        self._subscription = subscription
        if subscription.patterns:
            self._cluster.add_all_topics()
        self._on_metadata(self._cluster.metadata)

    def on_poll(self) -> None:
        self.member.on_poll(self._now_ms())
        if self.member.epoch < 0:
            self._advance()  # it may wait for this poll to join again

    async def leave(self) -> None:
        """Revokes all partitions and leaves. It takes as long as the listener takes."""
        self._subscription = None
        self.member.leave()
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._leave_waiters.append(waiter)
        self._advance()
        await waiter

    def stop(self) -> None:
        """Stops all actions."""
        self._subscription = None
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    def _on_metadata(self, metadata: MetadataSnapshot) -> None:
        if self._subscription is None:
            return
        self._report_unavailable_topics(self._subscription, metadata)
        with_internal = not self._settings.exclude_internal_topics
        resolved = self._subscription.resolve(metadata, with_internal=with_internal)
        self.member.on_metadata(metadata)
        self.member.subscribe(resolved, self._now_ms())
        self._advance()

    def _report_unavailable_topics(
        self, subscription: Subscription, metadata: MetadataSnapshot
    ) -> None:
        """Reports every subscribed topic that cannot be consumed once."""
        errors = {
            name: metadata.topics[name].error
            for name in subscription.names & metadata.topics.keys()
        }
        unavailable = {
            name: error
            for name, error in errors.items()
            if error in self._reportable_errors or error in self._logged_errors
        }
        for name, error in unavailable.items():
            if self._reported.get(name) == error:
                continue
            reason = f"Subscribed topic not available: {name}: {KafkaError(error).str()}"
            if error in self._logged_errors:
                client_log(self._settings).warning("%s: %s", self._settings.client_id, reason)
            else:
                self._listener.on_error(KafkaError(error, reason), name)
        self._reported = unavailable

    # Actions of the member

    def _advance(self) -> None:
        for action in self.member.advance(self._now_ms()):
            match action:
                case SendToGroupCoordinator():
                    self._start(self._send(action))
                case ReportError(error):
                    self._listener.on_error(error)
                case _:
                    self._start(self._change_assignment(action))
        self._watch_topics(self.member.needed_topics)
        if self.member.needs_metadata:
            self._cluster.refresh()
        self._wake_at(self.member.next_deadline_ms)
        if self.member.has_left:
            waiters, self._leave_waiters = self._leave_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def _watch_topics(self, topics: frozenset[str]) -> None:
        if topics != self._watched_topics:
            self._cluster.add_topics(topics - self._watched_topics)
            self._cluster.remove_topics(self._watched_topics - topics)
            self._watched_topics = topics

    async def _send(self, action: SendToGroupCoordinator) -> None:
        deadline = Deadline.after(action.timeout_ms)
        outcome: Any
        try:
            outcome = await self._send_and_wait(action, deadline)
            code = outcome.error_code
        except KafkaException as failure:
            outcome = failure.args[0]
            code = outcome.code()
        if code in COORDINATOR_MOVED or code < ErrorCode.UNKNOWN_SERVER_ERROR:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
        self.member.on_response(action.request, outcome, self._now_ms())
        self._advance()

    async def _send_and_wait(self, action: SendToGroupCoordinator, deadline: Deadline) -> Any:
        node_id = await self._cluster.coordinator(CoordinatorType.GROUP, self._group_id, deadline)
        timeout_ms = deadline.remaining_ms()
        if not action.waits_for_rebalance:
            return await self._cluster.send_request(action.request, node_id, timeout_ms=timeout_ms)
        response = asyncio.ensure_future(
            self._cluster.send_request(
                action.request, node_id, timeout_ms=timeout_ms, purpose=REBALANCE_CONNECTION
            )
        )
        try:
            return await self._wait_while_coordinator(node_id, response, deadline)
        finally:
            response.cancel()

    async def _wait_while_coordinator(
        self, node_id: int, response: asyncio.Future[Any], deadline: Deadline
    ) -> Any:
        """Waits for a response, which may take minutes, while the node is the coordinator.

        A coordinator that hangs, or is partitioned off, does not report that it was replaced.
        """
        while True:
            await asyncio.wait([response], timeout=self._settings.request_timeout_ms / 1000)
            if response.done():
                return response.result()
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
            current_id = await self._cluster.coordinator(
                CoordinatorType.GROUP, self._group_id, deadline
            )
            if current_id != node_id:
                fail(KafkaError._TRANSPORT, f"the coordinator is broker {current_id} now")

    async def _change_assignment(self, change: AssignmentChange) -> None:
        try:
            match change:
                case Assign(partitions, incremental):
                    await self._listener.on_partitions_assigned(partitions, incremental=incremental)
                case Revoke(partitions, incremental):
                    await self._listener.on_partitions_revoked(partitions, incremental=incremental)
                case Lose(partitions):
                    await self._listener.on_partitions_lost(partitions)
        except Exception:
            log.exception("Group %s: the %s callback failed", self._group_id, type(change).__name__)
        self.member.on_assignment_changed()
        self._advance()

    def _start(self, act: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(act)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Time

    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    def _wake_at(self, time_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if time_ms < math.inf:
            self._timer = self._loop.call_at(time_ms / 1000, self._advance)
