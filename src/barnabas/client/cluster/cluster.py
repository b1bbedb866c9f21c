"""`ClusterClient`: all requests of a client go through it. It is used on one loop only.

cluster = ClusterClient(settings)
cluster.want(["orders"])
topic = await cluster.topic("orders", deadline=Deadline.after(5_000))
response = await cluster.send_request(request, to=topic.partitions[0].leader)
"""

import errno
from collections.abc import Callable, Iterable
from typing import Any

from barnabas.client.backoff import Deadline
from barnabas.client.cluster.coordinators import CoordinatorFinder, CoordinatorType
from barnabas.client.cluster.metadata import MetadataSnapshot, TopicInfo
from barnabas.client.cluster.metadata_updater import ControllerMetadataUpdater, MetadataUpdater
from barnabas.client.cluster.nodes import NO_ADDRESS, ClusterNode, ClusterNodes, network_error
from barnabas.client.errors import KafkaError, KafkaException, broker_error, client_log, fail
from barnabas.client.settings import ConnectionSettings
from barnabas.config.addresses import Endpoint
from barnabas.net.connection_options import ConnectionCounters
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.peer import ResponseCallback
from barnabas.wire.schema import Message


def ignore_error(_: KafkaError) -> None:
    """The error callback of clients without one."""


class ClusterClient:
    """The brokers, topics and coordinators of one cluster, and the connections to them.

    With addresses of `controllers` it connects to the controllers instead: they are then
    `metadata.brokers`, and there are no topics.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        on_error: Callable[[KafkaError], None] = ignore_error,
        *,
        controllers: Iterable[Endpoint] = (),
    ) -> None:
        self._settings = settings
        addresses = tuple(controllers)
        if not addresses and not settings.bootstrap_servers:
            client_log(settings).warning("%s: %s", settings.client_id, NO_ADDRESS)
        self._nodes = ClusterNodes(addresses or settings.bootstrap_servers, settings, on_error)
        updater = ControllerMetadataUpdater if addresses else MetadataUpdater
        self._updater = updater(self._nodes, self.send_request, settings)
        self._coordinators = CoordinatorFinder(self._nodes, self.send_request, settings)

    @property
    def counters(self) -> dict[str, tuple[int, ConnectionCounters]]:
        """The counters of the connections to each address, and the id of the node there."""
        return {str(node): (node.node_id, node.counters) for node in self._nodes}

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Sets the credentials of connections made from now on."""
        if self._nodes.options.sasl is not None:
            self._nodes.options.sasl.update_credentials(username, password)

    @property
    def metadata(self) -> MetadataSnapshot:
        return self._updater.metadata

    @property
    def metadata_error(self) -> KafkaError | None:
        """Why there is no newer metadata: the error of the last request, or None."""
        return self._updater.last_error

    def add_listener(self, listener: Callable[[MetadataSnapshot], None]) -> None:
        """Calls `listener` after every metadata update."""
        self._updater.listeners.append(listener)

    # Requests

    async def send_request(
        self,
        request: Message,
        to: int | None = None,
        *,
        timeout_ms: int | None = None,
        purpose: str = "",
        max_version: int | None = None,
    ) -> Any:
        """Returns the response of node `to` (one attempt), or of any node that responds in time.

        A `purpose` has a connection of its own, if a node is named. `max_version` limits the
        version of the request. Raises KafkaException if there is no response.
        """
        if timeout_ms is None:
            timeout_ms = self._settings.request_timeout_ms
        deadline = Deadline.after(timeout_ms)
        if to is None:
            _, response = await self._send_to_any(request, deadline, max_version)
            return response
        node = self._nodes.get(to)
        if node is None:
            await self._updater.wait_for_update(deadline)
            node = self._nodes.get(to)
        if node is None:
            fail(KafkaError._UNKNOWN_BROKER, f"the cluster has no broker {to}")
        try:
            return await node.send_request(request, _remaining_ms(deadline), purpose, max_version)
        except OSError as failure:
            raise KafkaException(network_error(failure)) from None

    def send(
        self,
        node_id: int,
        request: Message,
        timeout_ms: int,
        on_response: ResponseCallback | None,
        *,
        purpose: str = "",
        max_version: int | None = None,
    ) -> None:
        """Sends a request to one node; `on_response` gets the response, or an OSError.

        The records in a response stay valid as long as they are referenced. Those of a request may
        be `barnabas.net.frame_transport.GatheredRecords` buffers. To a Produce request with
        acks=0 there is no response: `on_response` gets None when the request is sent.
        """
        node = self._nodes.get(node_id)
        if node is not None:
            node.send(request, timeout_ms, on_response, purpose, max_version)
        elif on_response is not None:
            unknown = OSError(errno.EHOSTUNREACH, f"the cluster has no broker {node_id}")
            self._nodes.loop.call_soon(on_response, unknown)

    def api_version(self, node_id: int, key: int) -> int | None:
        """Returns the version of an API that is used with a node; None before it is connected."""
        node = self._nodes.get(node_id)
        return None if node is None else node.api_version(key)

    # Coordinators

    async def send_to_coordinator(
        self,
        kind: CoordinatorType,
        key: str,
        request: Message | Callable[[], Message],
        error_of: Callable[[Any], int],
        *,
        deadline: Deadline,
        max_version: int | None = None,
    ) -> Any:
        """Returns the response of the coordinator of `key`, which is looked up again if it moved.

        `error_of` returns the error code of a response. A callable builds the request anew for
        each attempt. Raises KafkaException _TIMED_OUT, with the last error, after the deadline.
        """
        return await self._coordinators.send_request(
            kind, key, request, error_of, deadline, max_version
        )

    async def coordinator(self, kind: CoordinatorType, key: str, deadline: Deadline) -> int:
        return await self._coordinators.find(kind, key, deadline)

    async def find_coordinators(
        self, kind: CoordinatorType, keys: list[str], deadline: Deadline
    ) -> dict[str, int | KafkaError]:
        """Returns the nodes of coordinators, requested at once, or their errors."""
        return await self._coordinators.find_all(kind, keys, deadline)

    def forget_coordinator(self, kind: CoordinatorType, key: str) -> None:
        self._coordinators.forget(kind, key)

    # Metadata

    def add_topics(self, topics: Iterable[str]) -> None:
        """Keeps the metadata of these topics up to date."""
        self._updater.add_topics(topics)

    def remove_topics(self, topics: Iterable[str]) -> None:
        self._updater.remove_topics(topics)

    def add_all_topics(self) -> None:
        """Keeps the metadata of every topic up to date."""
        self._updater.add_all_topics()

    async def active_controller(self, deadline: Deadline) -> int | None:
        """Returns the active controller; None if there is none before the deadline."""
        if self.metadata.controller_id < 0:
            await self._updater.wait_for_update(deadline)
        return self.metadata.controller_id if self.metadata.controller_id >= 0 else None

    def refresh(self) -> None:
        """Requests metadata again soon, because it proved wrong."""
        self._updater.refresh()

    async def describe(
        self,
        topics: Iterable[str] | None,
        *,
        timeout_ms: int,
        create: bool = False,
        to: int | None = None,
    ) -> MetadataResponse:
        """Returns a broker's metadata of these topics, or of all, without caching it."""
        request = _metadata_request(topics, create=create)
        return _checked(await self.send_request(request, to, timeout_ms=timeout_ms))

    async def describe_with_node(
        self, topics: Iterable[str] | None, *, timeout_ms: int
    ) -> tuple[MetadataResponse, int, str]:
        """Returns the same from any node, with the node's id (-1 if unknown) and address."""
        request = _metadata_request(topics, create=False)
        node, response = await self._send_to_any(request, Deadline.after(timeout_ms), None)
        return _checked(response), node.node_id, str(node)

    async def topic(self, name: str, *, deadline: Deadline) -> TopicInfo:
        """Returns a topic once the cluster has it, and keeps its metadata up to date.

        Raises KafkaException with the topic's error after the deadline, or at once if the error is
        not retriable.
        """
        self.add_topics([name])
        while True:
            topic = self.metadata.topics.get(name)
            if topic is not None and not topic.error:
                return topic
            if topic is not None and (deadline.has_passed or not topic.error.retriable):
                raise KafkaException(broker_error(topic.error, f"{name}: {topic.error.name}"))
            try:
                await self._updater.wait_for_update(deadline)
            except KafkaException:
                if topic is None:
                    raise

    async def close(self) -> None:
        """Closes all connections. Requests that wait for a response fail."""
        self._updater.close()
        self._nodes.close()

    async def _send_to_any(
        self, request: Message, deadline: Deadline, max_version: int | None
    ) -> tuple[ClusterNode, Any]:
        failures: dict[str, OSError] = {}
        while True:
            node = await self._nodes.any_connected(deadline)
            try:
                return node, await node.send_request(
                    request, _remaining_ms(deadline), "", max_version
                )
            except OSError as failure:
                failures[str(node)] = failure
            await self._nodes.wait_before_retry(failures, deadline)


def _remaining_ms(deadline: Deadline) -> int:
    """Returns the remaining time. Raises KafkaException _TIMED_OUT if there is none.

    A request without time would close the connection, and fail the other requests on it.
    """
    if deadline.has_passed:
        error = KafkaError(
            KafkaError._TIMED_OUT, "no time was left to send the request", retriable=True
        )
        raise KafkaException(error)
    return max(1, deadline.remaining_ms())


def _metadata_request(topics: Iterable[str] | None, *, create: bool) -> MetadataRequest:
    named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=create)


def _checked(response: MetadataResponse) -> MetadataResponse:
    if response.error_code:
        raise KafkaException(broker_error(response.error_code))
    return response
