"""The config topic: every instance reads it, and the leader writes what operators request.

The leader's writes are transactions of the group's transactional id, `connect-cluster-GROUP`, as
those of workers in Java that write exactly once. A new leader fences the former one.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from barnabas.client._message import Message
from barnabas.client.compacted_topic import CompactedTopic
from barnabas.client.errors import KafkaException
from barnabas.client.transactional_writer import TransactionalWriter
from barnabas.connect.storage.config_state import (
    Config,
    ConfigChange,
    ConfigState,
    Unreadable,
    logger_record,
    task_count_record,
    task_records,
)
from barnabas.connect.storage.topic_log import KeyAndValue, TopicLog, next_offsets

_log = logging.getLogger(__name__)
_PARTITION = 0
_CONTENT = "the settings of connectors"


class ConfigTopic:
    """Lives on one event loop. Calls `on_change` with each change after `start` has returned."""

    def __init__(
        self,
        topic: str,
        group_id: str,
        client_config: Mapping[str, Any],
        on_change: Callable[[ConfigChange], None],
        *,
        replication_factor: int = 3,
        topic_configs: Mapping[str, str] | None = None,
        timeout_ms: int = 30_000,
    ) -> None:
        self.state = ConfigState()
        description = CompactedTopic(
            topic,
            _CONTENT,
            is_single_partition=True,
            replication_factor=replication_factor,
            configs=topic_configs or {},
        )
        self._log = TopicLog(description, client_config, self._apply)
        self._writer = TransactionalWriter(
            client_config, topic, f"connect-cluster-{group_id}", timeout_ms
        )
        self._timeout_s = timeout_ms / 1000
        self._on_change = on_change
        self._is_started = False

    @property
    def topic(self) -> str:
        return self._log.topic

    @property
    def next_offset(self) -> int:
        """The offset after the last record that was applied."""
        return self._log.positions[_PARTITION]

    async def start(self) -> None:
        """Creates the topic if there is none. Returns when it has been read to its end."""
        await self._log.start()
        self._is_started = True

    async def stop(self) -> None:
        await self._writer.close()
        await self._log.stop()

    async def wait_until_applied(self, next_offset: int) -> None:
        """Returns when everything before this offset is applied. Raises TimeoutError."""
        await self._log.wait_until_applied({_PARTITION: next_offset})

    async def read_to_end(self) -> None:
        await self._log.read_to_end()

    async def become_leader(self) -> None:
        """Fences the former leader. Returns when everything it has written is applied.

        Raises KafkaException or TimeoutError.
        """
        async with asyncio.timeout(self._timeout_s):
            await self._writer.open()
        await self._log.read_to_end()

    @property
    def is_leader(self) -> bool:
        """Whether this instance has fenced the others, and has not failed to write since."""
        return self._writer.is_open

    async def resign(self) -> None:
        """Another instance is the leader."""
        await self._writer.close()

    async def append(self, records: Iterable[KeyAndValue]) -> None:
        """Appends all records or none, as the leader. Returns when they are applied here.

        Raises KafkaException or TimeoutError, after which this instance is not the leader, and
        RecordsTooLargeError.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                written = await self._writer.write(records, _PARTITION)
        except (KafkaException, TimeoutError):
            await self._writer.close()  # it is unknown whether they were written
            raise
        await self._log.wait_until_applied(next_offsets(written))

    async def put_task_configs(
        self, name: str, configs: Sequence[Config], *, is_exactly_once: bool
    ) -> None:
        """Stores the tasks of a connector, as the instance that runs it."""
        records = task_records(name, configs)
        if is_exactly_once:  # how many transactional ids a worker in Java must fence
            records.append(task_count_record(name, len(configs)))
        await self._log.append(records)

    async def put_logger_level(self, namespace: str, level: str) -> None:
        """Sets a level on every instance that runs now."""
        await self._log.append([logger_record(namespace, level)])

    def _apply(self, message: Message) -> None:
        key = message.key()
        text = "" if key is None else key.decode(errors="replace")
        change = self.state.apply(text, message.value())
        if isinstance(change, Unreadable):
            _log.warning(
                "skipped a record of topic %s, offset %s: %s",
                self.topic,
                message.offset(),
                change.reason,
            )
        elif change is not None and self._is_started:
            self._on_change(change)
