"""Keeps the metadata of the topics that a client uses up to date.

One request fetches all of them: at once after a topic was added, soon after metadata proved wrong,
with a growing backoff while a topic is not settled, and when the metadata has reached its maximum
age.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from barnabas.client.backoff import Backoff, Deadline
from barnabas.client.cluster.metadata import BrokerInfo, MetadataSnapshot
from barnabas.client.cluster.nodes import ClusterNodes, SendRequest
from barnabas.client.errors import KafkaError, KafkaException, broker_error, error_in
from barnabas.client.settings import ConnectionSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import (
    CONTROLLERS,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

log = logging.getLogger(__name__)


class MetadataUpdater:
    """Fetches metadata and notifies the listeners."""

    def __init__(
        self, nodes: ClusterNodes, send_request: SendRequest, settings: ConnectionSettings
    ) -> None:
        self.metadata = MetadataSnapshot()
        self.listeners: list[Callable[[MetadataSnapshot], None]] = []
        self._nodes = nodes
        self._send_request = send_request
        self._settings = settings
        self._loop = nodes.loop
        self._topics: dict[str, None] = {}
        self._has_all_topics = False
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._fetch_task: asyncio.Task[None] | None = None
        self._fetched_s = -float("inf")
        self._has_new_topics = False  # since the request in flight was sent: fetch again at once
        self._is_wrong = False  # the metadata proved wrong: fetch again soon
        self._last_error: KafkaException | None = None  # of the last attempt
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []  # for the next update

    @property
    def last_error(self) -> KafkaError | None:
        """The error of the last request for metadata; None if it succeeded."""
        return None if self._last_error is None else error_in(self._last_error)

    def add_topics(self, topics: Iterable[str]) -> None:
        new = [topic for topic in topics if topic not in self._topics]
        if new:
            self._topics.update(dict.fromkeys(new))
            self._has_new_topics = True
            self._schedule(self._loop.time())

    def remove_topics(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._topics.pop(topic, None)

    def add_all_topics(self) -> None:
        if not self._has_all_topics:
            self._has_all_topics = self._has_new_topics = True
            self._schedule(self._loop.time())

    def refresh(self) -> None:
        self._is_wrong = True
        self._schedule(self._fetched_s + self._settings.retry_backoff_ms / 1000)

    async def wait_for_update(self, deadline: Deadline) -> None:
        """Waits for the next update. Raises KafkaException with the cause after the deadline."""
        updated: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(updated)
        if self._fetch_task is None:
            self.refresh()
        try:
            await asyncio.wait_for(updated, deadline.remaining_ms() / 1000)
        except TimeoutError:
            if self._last_error is not None:
                raise self._last_error from None
            error = KafkaError(KafkaError._TIMED_OUT, "no broker sent metadata in time")
            raise KafkaException(error) from None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._fetch_task is not None:
            self._fetch_task.cancel()
        error = KafkaError(KafkaError._DESTROY, "the client was closed")
        for future in self._waiting:
            if not future.done():
                future.set_exception(KafkaException(error))

    def _schedule(self, due_s: float) -> None:
        """Schedules a fetch at that time or earlier, unless a request is in flight."""
        if self._fetch_task is not None or self._nodes.is_closed:
            return
        if self._timer is not None:
            if self._timer.when() <= due_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due_s, self._start_fetch)

    def _start_fetch(self) -> None:
        self._timer = None
        self._fetch_task = self._loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        self._has_new_topics = self._is_wrong = False
        self._fetched_s = self._loop.time()
        pause_ms: float = self._settings.metadata_max_age_ms
        try:
            self._apply(await self._fetch())
        except KafkaException as exception:
            self._report_first(exception)
            self._last_error = exception
            pause_ms = self._backoff.next_ms()
        else:
            self._last_error = None
            if all(topic.is_settled for topic in self.metadata.topics.values()):
                self._backoff.reset()
            else:
                pause_ms = self._backoff.next_ms()
        finally:
            self._fetch_task = None
        self._schedule(self._loop.time() + pause_ms / 1000)
        if self._is_wrong:
            self.refresh()
        if self._has_new_topics:
            self._schedule(self._loop.time())

    def _report_first(self, exception: KafkaException) -> None:
        """Reports that a node serves no metadata, such as a controller; errors of connections are
        reported by the nodes."""
        error = error_in(exception)
        if self._last_error is None and error.code() == ErrorCode.UNSUPPORTED_VERSION:
            self._nodes.report(error)

    async def _fetch(self) -> MetadataSnapshot:
        """Returns the metadata after a request. Raises KafkaException if it failed."""
        is_complete = self._has_all_topics
        request = MetadataRequest(
            topics=None
            if is_complete
            else [MetadataRequestTopic(name=name) for name in self._topics],
            allow_auto_topic_creation=self._settings.allow_auto_create_topics,
        )
        response: MetadataResponse = await self._send_request(request)
        self._raise_error(response.error_code)
        return self.metadata.updated(response, self._topics, is_complete=is_complete)

    def _raise_error(self, error_code: int, message: str | None = None) -> None:
        if error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._nodes.rebootstrap()
        if error_code:
            raise KafkaException(broker_error(error_code, message))

    def _apply(self, metadata: MetadataSnapshot) -> None:
        if not metadata.brokers:
            raise KafkaException(
                broker_error(ErrorCode.BROKER_NOT_AVAILABLE, "the response has no brokers")
            )
        self.metadata = metadata
        self._nodes.update(metadata.brokers.values())
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        for listener in self.listeners:
            try:
                listener(metadata)
            except Exception:
                log.exception("A listener failed on new metadata")


class ControllerMetadataUpdater(MetadataUpdater):
    """Keeps the list of controllers up to date; controllers have no topics (KIP-919)."""

    async def _fetch(self) -> MetadataSnapshot:
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        response: DescribeClusterResponse = await self._send_request(request)
        self._raise_error(response.error_code, response.error_message)
        controllers = {
            broker.broker_id: BrokerInfo(broker.broker_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        return MetadataSnapshot(response.cluster_id, response.controller_id, controllers)
