"""The positions of source connectors, in Connect's offset topic.

Key `["CONNECTOR",{partition}]`, value `{position}`; without a value, the position is removed.

A worker in Java finds a position by the bytes of its key. So a new key has the bytes that Java
writes for a HashMap, and an existing key keeps its bytes, whatever the order of its entries: keys
are found here by their content.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client._message import Message
from barnabas.client.compacted_topic import CompactedTopic
from barnabas.connect.storage.java_json import encode_java_json
from barnabas.connect.storage.topic_log import KeyAndValue, TopicLog

Partition = Mapping[str, Any]
Position = Mapping[str, Any]

_log = logging.getLogger(__name__)
_CONTENT = "the positions of source connectors"


class OffsetTopic:
    """Lives on one event loop. `start` must have returned before anything else is called.

    Positions are what was read last: call `read_to_end` before they are used for the start of a
    connector.
    """

    def __init__(
        self,
        topic: str,
        client_config: Mapping[str, Any],
        *,
        partitions: int = 25,
        replication_factor: int = 3,
        topic_configs: Mapping[str, str] | None = None,
    ) -> None:
        description = CompactedTopic(
            topic,
            _CONTENT,
            partitions,
            replication_factor=replication_factor,
            configs=topic_configs or {},
        )
        self._log = TopicLog(description, client_config, self._apply)
        self._positions = _Positions()

    @property
    def topic(self) -> str:
        return self._log.topic

    async def start(self) -> None:
        """Creates the topic if there is none. Returns when it has been read to its end."""
        await self._log.start()

    async def stop(self) -> None:
        await self._log.stop()

    async def read_to_end(self) -> None:
        """Returns when every position is known that was committed before the call."""
        await self._log.read_to_end()

    def offsets(self, connector: str) -> list[tuple[Partition, Position]]:
        """Returns the partitions of a connector that have a position."""
        return self._positions.of(connector)

    def offset(self, connector: str, partition: Partition) -> Position | None:
        return self._positions.get(connector, partition)

    def record(self, connector: str, partition: Partition, offset: Position | None) -> KeyAndValue:
        """Returns the record that stores a position; None removes it.

        Write it with Java's partitioner (murmur2), which is the default of our producers.
        """
        key = self._positions.key(connector, partition)
        if key is None:
            key = encode_java_json([connector, partition])
        return key, None if offset is None else encode_java_json(offset)

    async def write(
        self, connector: str, offsets: Iterable[tuple[Partition, Position | None]]
    ) -> None:
        """Returns when the positions are acknowledged and can be read back."""
        records = []
        for partition, offset in offsets:
            records.append(self.record(connector, partition, offset))
            others = self._positions.other_keys(connector, partition)
            records += [(key, None) for key in others]  # the partition must have one position
        await self._log.append(records)

    def _apply(self, message: Message) -> None:
        try:
            self._positions.apply(message.key() or b"", message.value())
        except UnreadablePositionError as error:
            _log.warning(
                "skipped a record of topic %s, partition %s, offset %s: %s",
                self.topic,
                message.partition(),
                message.offset(),
                error,
            )


class UnreadablePositionError(Exception):
    """A record of the topic is not in Connect's format."""


class _Positions:
    """What the records contain, by connector and by the content of the partition."""

    def __init__(self) -> None:
        self._connectors: dict[str, dict[str, dict[bytes, tuple[Partition, Position]]]] = {}

    def apply(self, key: bytes, value: bytes | None) -> None:
        connector, partition = _parse_key(key)
        position = _parse_position(value)
        content = _content(partition)
        by_content = self._connectors.setdefault(connector, {})
        by_key = by_content.setdefault(content, {})
        by_key.pop(key, None)
        if position is not None:
            by_key[key] = partition, position  # the newest is the last
        if not by_key:
            del by_content[content]
        if not by_content:
            del self._connectors[connector]

    def of(self, connector: str) -> list[tuple[Partition, Position]]:
        by_content = self._connectors.get(connector, {})
        return [_newest(by_key)[1] for by_key in by_content.values()]

    def get(self, connector: str, partition: Partition) -> Position | None:
        by_key = self._by_key(connector, partition)
        return _newest(by_key)[1][1] if by_key else None

    def key(self, connector: str, partition: Partition) -> bytes | None:
        by_key = self._by_key(connector, partition)
        return _newest(by_key)[0] if by_key else None

    def other_keys(self, connector: str, partition: Partition) -> list[bytes]:
        """Returns older keys of the same content: clients have written different orders."""
        return list(self._by_key(connector, partition))[:-1]

    def _by_key(
        self, connector: str, partition: Partition
    ) -> dict[bytes, tuple[Partition, Position]]:
        return self._connectors.get(connector, {}).get(_content(partition), {})


def _newest(
    by_key: dict[bytes, tuple[Partition, Position]],
) -> tuple[bytes, tuple[Partition, Position]]:
    return next(reversed(by_key.items()))


def _content(partition: Partition) -> str:
    return json.dumps(partition, sort_keys=True)


def _parse_key(key: bytes) -> tuple[str, Partition]:
    match _parse(key, "key"):
        case [str(connector), dict(partition)]:
            return connector, partition
    raise UnreadablePositionError("the key is not a list of a connector's name and a partition")


def _parse_position(value: bytes | None) -> Position | None:
    position = None if value is None else _parse(value, "value")
    if position is None or isinstance(position, dict):
        return position
    raise UnreadablePositionError("the value is not a map")


def _parse(content: bytes, what: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadablePositionError(f"the {what} is not JSON: {error}") from None
