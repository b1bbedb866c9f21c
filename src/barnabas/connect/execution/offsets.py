"""Reads and changes the positions of connectors, for the REST API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.values import TopicPartition
from barnabas.connect.connector import Partition, Position, SinkConnector, SourceConnector
from barnabas.connect.connector import TopicPartition as PartitionKey
from barnabas.connect.errors import ConnectError
from barnabas.connect.execution.committer import SinkCommitter, SourceCommitter, group_offsets
from barnabas.connect.execution.open_transactions import recover_positions
from barnabas.connect.execution.settings import client_settings
from barnabas.connect.execution.sink_work import sink_group, sink_transactional_id
from barnabas.connect.execution.source_work import (
    PRODUCER_DEFAULTS,
)
from barnabas.connect.execution.work import EngineServices
from barnabas.connect.model import RequestFailedError, StoredOffset
from barnabas.connect.plugins import find_connector

T = TypeVar("T")

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"

_REQUEST_TIMEOUT_S = 60.0


class ConnectorOffsets:
    def __init__(self, services: EngineServices) -> None:
        self._services = services

    async def read(self, name: str, config: Mapping[str, str]) -> list[StoredOffset]:
        if issubclass(_connector_class(config), SinkConnector):
            group, admin = sink_group(name, config), self._client("admin", config)
            found = await self._services.blocking.run(group_offsets, admin, group, None)
            return [
                StoredOffset({TOPIC: topic, PARTITION: partition}, {OFFSET: offset})
                for (topic, partition), offset in sorted(found.items())
            ]
        positions = self._services.positions
        await positions.read_to_end()
        return [StoredOffset(*entry) for entry in positions.offsets(name)]

    async def alter(
        self, name: str, config: Mapping[str, str], offsets: Sequence[StoredOffset] | None
    ) -> bool:
        """None resets all positions. Raises RequestFailed."""
        found = _connector_class(config)
        if getattr(found, "runs_own_query", False):
            raise RequestFailedError(
                400, f"The positions of connector {name} are in the checkpoint of its query."
            )
        connector = found()
        await self._services.blocking.run(_checked, connector.configure, config)
        if isinstance(connector, SinkConnector):
            return await self._alter_sink(name, config, connector, offsets)
        assert isinstance(connector, SourceConnector)
        return await self._alter_source(name, config, connector, offsets)

    async def _alter_sink(
        self,
        name: str,
        config: Mapping[str, str],
        connector: SinkConnector,
        offsets: Sequence[StoredOffset] | None,
    ) -> bool:
        blocking, group = self._services.blocking, sink_group(name, config)
        admin = self._client("admin", config)
        if offsets is None:
            committed = await blocking.run(group_offsets, admin, group, None)
            wanted: dict[PartitionKey, int | None] = dict.fromkeys(committed)
        else:
            wanted = dict(map(_sink_offset, offsets))
        is_all = await blocking.run(_checked, connector.check_offsets, wanted)
        committer = SinkCommitter(
            connector,
            group,
            sink_transactional_id(self._services.worker.group_id, name),
            self._client("producer", config),
            admin,
        )
        await blocking.run(committer.fence)  # a commit in flight must not come later
        await blocking.run(committer.close)
        async with AioAdminClient(dict(admin)) as client:
            try:
                await _alter_group(client, group, wanted, is_reset=offsets is None)
            except KafkaException as error:
                raise _group_error(name, error) from error
        return is_all

    async def _alter_source(
        self,
        name: str,
        config: Mapping[str, str],
        connector: SourceConnector,
        offsets: Sequence[StoredOffset] | None,
    ) -> bool:
        blocking, positions = self._services.blocking, self._services.positions
        worker = self._services.worker
        admin = self._client("admin", config)
        if worker.exactly_once:
            producer = {**PRODUCER_DEFAULTS, **self._client("producer", config)}
            committer = SourceCommitter(worker.group_id, name, self._services.run, producer)
            try:
                await recover_positions(committer, admin, positions.topic, blocking)
            finally:
                await blocking.run(committer.close)
        await positions.read_to_end()
        wanted: list[tuple[Partition, Position | None]]
        if offsets is None:
            wanted = [(partition, None) for partition, _ in positions.offsets(name)]
        else:
            wanted = [(each.partition, each.offset) for each in offsets]
        is_all = await blocking.run(_checked, connector.check_offsets, wanted)
        await positions.write(name, wanted)
        return is_all

    def _client(self, kind: str, config: Mapping[str, str]) -> dict[str, str]:
        return client_settings(kind, config, self._services.worker.client(kind))


def _connector_class(config: Mapping[str, str]) -> type[Any]:
    try:
        return find_connector(config.get("connector.class", ""), config)
    except ConnectError as error:
        raise RequestFailedError(500, str(error)) from error


def _checked(check: Callable[[Any], T], argument: object) -> T:
    try:
        return check(argument)
    except ConnectError as error:
        raise RequestFailedError(500, str(error)) from error


def _sink_offset(stored: StoredOffset) -> tuple[PartitionKey, int | None]:
    partition, offset = stored.partition, stored.offset
    if not partition:
        raise RequestFailedError(400, "The partition for a sink connector offset cannot be null")
    if TOPIC not in partition or PARTITION not in partition:
        raise RequestFailedError(
            400,
            f"The partition for a sink connector offset must contain the keys '{TOPIC}' and "
            f"'{PARTITION}'",
        )
    number = _integer(partition[PARTITION], "partition")
    if offset is None:
        return (str(partition[TOPIC]), number), None
    if OFFSET not in offset:
        raise RequestFailedError(
            400,
            f"The offset for a sink connector should either be null or contain the key '{OFFSET}'",
        )
    return (str(partition[TOPIC]), number), _integer(offset[OFFSET], "offset")


def _integer(value: object, what: str) -> int:
    try:
        number = int(str(value))
        if number >= 0:
            return number
    except ValueError:
        pass
    raise RequestFailedError(
        400,
        f"Failed to parse the following Kafka {what} value in the provided offsets: '{value}'. "
        f"{what.capitalize()} values for sink connectors need to be integers.",
    )


async def _alter_group(
    client: AioAdminClient,
    group: str,
    wanted: Mapping[PartitionKey, int | None],
    *,
    is_reset: bool,
) -> None:
    if is_reset:
        results = await client.delete_consumer_groups([group], request_timeout=_REQUEST_TIMEOUT_S)
        error = results.errors.get(group)
        if error is not None and error.code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise KafkaException(error)
        return
    altered = [TopicPartition(*key, offset) for key, offset in wanted.items() if offset is not None]
    deleted = [TopicPartition(*key) for key, offset in wanted.items() if offset is None]
    for partitions, change in (
        (altered, client.alter_consumer_group_offsets),
        (deleted, client.delete_consumer_group_offsets),
    ):
        if partitions:
            request = [ConsumerGroupTopicPartitions(group, partitions)]
            changed = await change(request, request_timeout=_REQUEST_TIMEOUT_S)
            for partition in changed[group].topic_partitions or ():
                if partition.error is not None:
                    raise KafkaException(partition.error)


def _group_error(name: str, error: KafkaException) -> RequestFailedError:
    if error_in(error).code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP):
        return RequestFailedError(
            500,
            f"Failed to alter consumer group offsets for connector {name} either because its tasks "
            "haven't stopped completely yet or the connector was resumed before the request to "
            "alter its offsets could be successfully completed. If the connector is in a stopped "
            "state, this operation can be safely retried.",
        )
    return RequestFailedError(
        500, f"Failed to alter consumer group offsets for connector {name}: {error_in(error).str()}"
    )
