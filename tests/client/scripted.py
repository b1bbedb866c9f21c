"""A broker on loopback whose responses a test scripts.

    async with ScriptedBroker({ApiKey.LIST_GROUPS: lambda request: ListGroupsResponse()}) as broker:
        cluster = ClusterClient(broker.settings())

A handler is a function of the request: it returns the response, or None for no response, or an
awaitable of either, and may raise HangUp. ApiVersions lists the APIs with handlers. By default
Metadata and FindCoordinator return this broker only. The requests of one connection are handled in
order, as in Kafka.
"""

import asyncio
import inspect
import ssl
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Any, NamedTuple

from barnabas.client.settings import ConnectionSettings
from barnabas.config.addresses import Endpoint
from barnabas.testing.ports import free_port
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.headers import RequestHeader, read_request_header, write_response_header
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

HOST = "127.0.0.1"
_LENGTH = Struct(">i")
_LARGEST_BYTES = 100 << 20

Handler = Callable[[Any], Any]


class HangUp(Exception):  # noqa: N818 - what to do, not a fault
    """Raised by a handler: closes the connection instead."""


class ReceivedRequest(NamedTuple):
    """One request that has arrived."""

    key: ApiKey
    version: int
    client_id: str | None
    request: Any


class ScriptedBroker:
    def __init__(
        self,
        handlers: Mapping[ApiKey, Handler] | None = None,
        *,
        node_id: int = 1,
        topics: Mapping[str, int] | None = None,
        versions: Mapping[ApiKey, tuple[int, int]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.node_id = node_id
        self.topics = dict(topics or {})  # name -> number of partitions, all led by this broker
        self.versions = dict(versions or {})  # where they are not all of the codec's
        self.received: list[ReceivedRequest] = []
        self.connects = 0
        self.port = 0
        self.handlers: dict[ApiKey, Handler] = {
            ApiKey.API_VERSIONS: lambda _: self._api_versions(),
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._coordinator,
            **(handlers or {}),
        }
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "ScriptedBroker":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listens; after `stop`, on the same port again."""
        self.port = self.port or free_port()  # which no other socket gets while it is stopped
        self._server = await asyncio.start_server(self._serve, HOST, self.port, ssl=self._tls)

    async def stop(self) -> None:
        """Closes all connections and stops listening."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.hang_up()

    def hang_up(self) -> None:
        """Closes all connections; new ones are accepted."""
        for writer in list(self._writers):
            writer.transport.abort()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(HOST, self.port)

    @property
    def connections(self) -> int:
        return len(self._writers)

    def settings(self, **others: Any) -> ConnectionSettings:
        """Settings of a client of this broker, with short timeouts."""
        return settings_of([self], **others)

    def requests_of(self, key: ApiKey) -> list[Any]:
        """All requests of an API that have arrived."""
        return [one.request for one in self.received if one.key == key]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connects += 1
        self._writers.add(writer)
        try:
            while True:
                (length,) = _LENGTH.unpack(await reader.readexactly(4))
                if not 0 < length < _LARGEST_BYTES:
                    raise HangUp
                response = await self._respond(await reader.readexactly(length))
                if response is not None:
                    writer.write(response)
                    await writer.drain()
        except (HangUp, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _respond(self, frame: bytes) -> bytes | None:
        header, body = read_request_header(frame)
        key = ApiKey(header.api_key)
        lowest, highest = self._range(key)
        if key == ApiKey.API_VERSIONS and not lowest <= header.api_version <= highest:
            error = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            return _frame(header._replace(api_version=0), error)
        assert lowest <= header.api_version <= highest, "the version was not advertised"
        request = api(key).request.read_exactly(frame, header.api_version, body)
        self.received.append(ReceivedRequest(key, header.api_version, header.client_id, request))
        response = self.handlers[key](request)
        if inspect.isawaitable(response):
            response = await response
        return None if response is None else _frame(header, response)

    def _range(self, key: ApiKey) -> tuple[int, int]:
        known = api(key).stable_versions
        return self.versions.get(key, (known.min, known.max))

    def _api_versions(self) -> ApiVersionsResponse:
        ranges = [(key, *self._range(key)) for key in self.handlers]
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=lowest, max_version=highest)
                for key, lowest, highest in ranges
            ]
        )

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        return metadata_of([self], request)

    def _coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        node = {"node_id": self.node_id, "host": HOST, "port": self.port}
        if not request.coordinator_keys:
            return FindCoordinatorResponse(**node)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, error_code=0, error_message=None, **node)
                for key in request.coordinator_keys
            ]
        )


def settings_of(brokers: Iterable[ScriptedBroker], **others: Any) -> ConnectionSettings:
    """Settings of a client of these brokers, in a hurry."""
    hurried: dict[str, Any] = {
        "request_timeout_ms": 5_000,
        "connect_timeout_ms": 2_000,
        "retry_backoff_ms": 5,
        "retry_backoff_max_ms": 20,
        "reconnect_backoff_ms": 5,
        "reconnect_backoff_max_ms": 20,
    }
    addresses = tuple(broker.endpoint for broker in brokers)
    return ConnectionSettings(bootstrap_servers=addresses, **{**hurried, **others})


def metadata_of(brokers: Iterable[ScriptedBroker], request: MetadataRequest) -> MetadataResponse:
    """What these brokers are, with the topics of each led by it."""
    brokers = list(brokers)
    leaders = {name: broker for broker in brokers for name in broker.topics}
    names = leaders if request.topics is None else [topic.name for topic in request.topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.node_id, host=HOST, port=each.port)
            for each in brokers
        ],
        cluster_id="castle",
        controller_id=brokers[0].node_id,
        topics=[_topic(str(name), leaders.get(str(name))) for name in names],
    )


def _topic(name: str, leader: ScriptedBroker | None) -> MetadataResponseTopic:
    if leader is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(name=name, error_code=unknown, partitions=[])
    return MetadataResponseTopic(
        name=name,
        error_code=0,
        topic_id=topic_id(name),
        partitions=[a_partition(index, leader.node_id) for index in range(leader.topics[name])],
    )


def a_partition(index: int, leader: int, epoch: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index,
        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[leader],
        isr_nodes=[leader],
    )


def topic_id(name: str) -> bytes:
    """The id of a scripted topic."""
    return name.encode()[:16].rjust(16, b"\1")


def _frame(header: RequestHeader, response: Message) -> bytes:
    out = Outgoing()
    write_response_header(header, out)
    content = bytes(out) + response.write(header.api_version)
    return _LENGTH.pack(len(content)) + content
