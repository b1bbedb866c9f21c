"""Keeps what is known of the wanted topics fresh.

One request asks for all of them: at once for those that are new, soon when something proved
wrong, at growing distances while something is not settled, and when what is known has come of
age.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from barnabas.client.backoff import Backoff, Deadline
from barnabas.client.cluster.metadata import BrokerInfo, Metadata
from barnabas.client.cluster.nodes import ClusterNodes, SendRequest
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.settings import ConnectionSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_cluster import (
    CONTROLLERS,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

log = logging.getLogger(__name__)


class MetadataUpdater:
    """Asks for metadata; tells listeners what is new."""

    def __init__(
        self, nodes: ClusterNodes, send_request: SendRequest, settings: ConnectionSettings
    ) -> None:
        self.metadata = Metadata()
        self.listeners: list[Callable[[Metadata], None]] = []
        self._nodes = nodes
        self._send_request = send_request
        self._settings = settings
        self._loop = nodes.loop
        self._wanted: dict[str, None] = {}
        self._wants_all = False
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._asking: asyncio.Task[None] | None = None
        self._asked_s = -float("inf")
        self._has_news = False  # since the question that is being answered: ask again at once
        self._is_wrong = False  # what is known; so ask again soon
        self._failure: KafkaException | None = None  # of the last attempt
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []  # for the next answer

    def add_topics(self, topics: Iterable[str]) -> None:
        new = [topic for topic in topics if topic not in self._wanted]
        if new:
            self._wanted.update(dict.fromkeys(new))
            self._has_news = True
            self._ask_by(self._loop.time())

    def remove_topics(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._wanted.pop(topic, None)

    def add_all_topics(self) -> None:
        if not self._wants_all:
            self._wants_all = self._has_news = True
            self._ask_by(self._loop.time())

    def refresh(self) -> None:
        self._is_wrong = True
        self._ask_by(self._asked_s + self._settings.retry_backoff_ms / 1000)

    async def wait_for_update(self, deadline: Deadline) -> None:
        """Wait until metadata was told once more; KafkaException, why not, after the deadline."""
        told: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(told)
        if self._asking is None:
            self.refresh()
        try:
            await asyncio.wait_for(told, deadline.remaining_ms() / 1000)
        except TimeoutError:
            if self._failure is not None:
                raise self._failure from None
            error = KafkaError(KafkaError._TIMED_OUT, "no broker told of the cluster in time")
            raise KafkaException(error) from None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
        error = KafkaError(KafkaError._DESTROY, "the client was closed")
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(KafkaException(error))

    def _ask_by(self, due_s: float) -> None:
        """Ask at that time, if not earlier; not while an answer is awaited."""
        if self._asking is not None or self._nodes.is_closed:
            return
        if self._timer is not None:
            if self._timer.when() <= due_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due_s, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._asking = self._loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        self._has_news = self._is_wrong = False
        self._asked_s = self._loop.time()
        pause_ms: float = self._settings.metadata_max_age_ms
        try:
            self._told(await self._question())
        except KafkaException as failure:
            self._failure = failure
            pause_ms = self._backoff.next_ms()
        else:
            self._failure = None
            if all(topic.is_settled for topic in self.metadata.topics.values()):
                self._backoff.reset()
            else:
                pause_ms = self._backoff.next_ms()
        finally:
            self._asking = None
        self._ask_by(self._loop.time() + pause_ms / 1000)
        if self._is_wrong:
            self.refresh()
        if self._has_news:
            self._ask_by(self._loop.time())

    async def _question(self) -> Metadata:
        """What is known after a broker was asked; KafkaException if it did not answer well."""
        asks_all = self._wants_all
        request = MetadataRequest(
            topics=None if asks_all else [MetadataRequestTopic(name=name) for name in self._wanted],
            allow_auto_topic_creation=self._settings.allow_auto_create_topics,
        )
        response: MetadataResponse = await self._send_request(request)
        self._check(response.error_code)
        return self.metadata.updated(response, self._wanted, is_complete=asks_all)

    def _check(self, error_code: int, message: str | None = None) -> None:
        if error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._nodes.rebootstrap()
        if error_code:
            raise KafkaException(broker_error(error_code, message))

    def _told(self, metadata: Metadata) -> None:
        if not metadata.brokers:
            raise KafkaException(broker_error(ErrorCode.BROKER_NOT_AVAILABLE, "it knows nobody"))
        self.metadata = metadata
        self._nodes.update(metadata.brokers.values())
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        for listener in self.listeners:
            try:
                listener(metadata)
            except Exception:
                log.exception("new metadata was not handled")


class ControllerMetadataUpdater(MetadataUpdater):
    """Keeps known who the controllers are: they tell of no topics (KIP-919)."""

    async def _question(self) -> Metadata:
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        response: DescribeClusterResponse = await self._send_request(request)
        self._check(response.error_code, response.error_message)
        controllers = {
            each.broker_id: BrokerInfo(each.broker_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        return Metadata(response.cluster_id, response.controller_id, controllers)
