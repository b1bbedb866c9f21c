"""Keeps what is known of the wanted topics fresh.

One request asks for all of them: at once for those that are new, again when something proved
wrong or is not settled (at growing distances), and when what is known has come of age.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from barnabas.client.cluster.metadata import Metadata
from barnabas.client.cluster.nodes import Nodes
from barnabas.client.cluster.patience import Backoff, Deadline
from barnabas.client.errors import KafkaError, KafkaException, fail, told_by_broker
from barnabas.client.settings import ConnectionSettings
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

Ask = Callable[..., Coroutine[Any, Any, Any]]


class Watch:
    """Asks for metadata; tells listeners what is new."""

    def __init__(self, nodes: Nodes, ask: Ask, settings: ConnectionSettings) -> None:
        self.metadata = Metadata()
        self.listeners: list[Callable[[Metadata], None]] = []
        self._nodes = nodes
        self._ask = ask
        self._settings = settings
        self._loop = nodes.loop
        self._wanted: dict[str, None] = {}
        self._wants_all = False
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._asking: asyncio.Task[None] | None = None
        self._is_stale = False  # what is being told now does not suffice
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []  # for the next answer

    def want(self, topics: Iterable[str]) -> None:
        new = [topic for topic in topics if topic not in self._wanted]
        if new:
            self._wanted.update(dict.fromkeys(new))
            self._ask_within(0)

    def unwant(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._wanted.pop(topic, None)

    def want_all(self) -> None:
        if not self._wants_all:
            self._wants_all = True
            self._ask_within(0)

    def refresh(self) -> None:
        self._ask_within(self._settings.retry_backoff_ms)

    async def answered(self, deadline: Deadline) -> None:
        """Wait until metadata was told once more; KafkaException _TIMED_OUT after the deadline."""
        told: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(told)
        if self._asking is None and self._timer is None:
            self._ask_within(0)
        try:
            await asyncio.wait_for(told, deadline.left_ms() / 1000)
        except TimeoutError:
            fail(KafkaError._TIMED_OUT, "no broker told of the cluster in time")

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(KafkaException(KafkaError(KafkaError._DESTROY)))

    def _ask_within(self, pause_ms: float) -> None:
        """Ask after a pause, if not earlier."""
        if self._asking is not None:
            self._is_stale = True
            return
        due_s = self._loop.time() + pause_ms / 1000
        if self._timer is not None:
            if self._timer.when() <= due_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due_s, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._asking = self._loop.create_task(self._refresh())

    async def _refresh(self) -> None:
        self._is_stale = False
        wanted, asks_all = list(self._wanted), self._wants_all
        request = MetadataRequest(
            topics=None if asks_all else [MetadataRequestTopic(name=name) for name in wanted],
            allow_auto_topic_creation=self._settings.allow_auto_create_topics and not asks_all,
        )
        pause_ms: float = self._settings.metadata_max_age_ms
        try:
            response = await self._ask(request)
            self._told(response, asks_all)
            if all(topic.is_settled for topic in self.metadata.topics.values()):
                self._backoff.reset()
            else:
                pause_ms = self._backoff.next_ms()
        except KafkaException:
            pause_ms = self._backoff.next_ms()
        finally:
            self._asking = None
        if self._is_stale:
            pause_ms = min(pause_ms, 0 if self._has_news(wanted) else self._backoff.next_ms())
        self._ask_within(pause_ms)

    def _has_news(self, asked: list[str]) -> bool:
        return not self._wants_all and not self._wanted.keys() <= set(asked)

    def _told(self, response: MetadataResponse, asked_for_all: bool) -> None:
        if response.error_code:
            raise KafkaException(told_by_broker(response.error_code))
        self.metadata = self.metadata.after(response, self._wanted, asked_for_all=asked_for_all)
        self._nodes.learn(self.metadata.brokers)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        for listener in self.listeners:
            listener(self.metadata)
