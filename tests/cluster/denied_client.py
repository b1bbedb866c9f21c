"""A client whose user is denied everything, and that sends requests nevertheless, to every node."""

import contextlib
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.cluster.node import ProcessNode
from tests.cluster.security import describe_all_acls
from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.requests import fetch, produce

from barnabas.testing.requests import Connect, exchange
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.schema import Message

USER = "mallory"
METADATA_TOPIC = "__cluster_metadata"

_TIMEOUT_S = 3
_PAUSE_S = 0.02
_MAX_EXAMPLES = 5

_DENIALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,  # from a controller that has not loaded the ACLs, as in Kafka
}
_NO_CONTROLLER = {ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT}
"""For a request that only the active controller decides: none has checked it."""


@dataclass(slots=True, frozen=True)
class DeniedRequest:
    """A request, and the error codes of its response."""

    request: Message
    version: int
    codes_of: Callable[[Any], Iterable[int]]
    is_change: bool = False

    def is_denied(self, code: ErrorCode) -> bool:
        return code in _DENIALS or (self.is_change and code in _NO_CONTROLLER)


class DeniedClient(threading.Thread):
    """Sends requests to one port until `stop`. `served` describes responses that are no denials."""

    def __init__(self, port: int, connect: Connect, requests: Sequence[DeniedRequest]) -> None:
        super().__init__(name=f"{USER} at port {port}", daemon=True)
        self.served: list[str] = []
        self.denied: Counter[str] = Counter()
        self._port = port
        self._connect = connect
        self._requests = requests
        self._rng = random.Random(port)
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while self._is_running():
            # The node may be down or paused, and closes connections when it stops.
            with contextlib.suppress(OSError), self._connect(self._port, _TIMEOUT_S) as connection:
                self._send_requests(connection)

    def _is_running(self) -> bool:
        return not self._stopping.wait(_PAUSE_S) and len(self.served) < _MAX_EXAMPLES

    def _send_requests(self, connection: socket.socket) -> None:
        while self._is_running():
            denied = self._rng.choice(self._requests)
            response = exchange(connection, denied.request, denied.version)
            name = type(denied.request).__name__
            for code in map(ErrorCode.of, denied.codes_of(response)):
                if denied.is_denied(code):
                    self.denied[f"{name} {code.name}"] += 1
                else:
                    self.served.append(f"{self.name}: {name} got {code.name}: {response!s:.200}")


def denied_clients(
    nodes: Iterable[ProcessNode], connect: Connect, topics: Sequence[str]
) -> list[DeniedClient]:
    """Returns a client for each listener of the nodes that clients can reach."""
    clients = []
    for node in nodes:
        if node.role.broker:
            clients.append(DeniedClient(node.port, connect, list(broker_requests(topics))))
        if node.role.controller:
            requests = list(controller_requests())
            clients.append(DeniedClient(node.controller_port, connect, requests))
    return clients


def broker_requests(topics: Sequence[str]) -> Iterator[DeniedRequest]:
    for topic in topics:
        yield DeniedRequest(produce(topic, batch(value=b"denied")), 9, _produce_codes)
        yield DeniedRequest(fetch(topic), 12, _fetch_codes)
        named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        yield DeniedRequest(named, 12, _topic_codes)
    yield from _requests_of_both()


def controller_requests() -> Iterator[DeniedRequest]:
    yield DeniedRequest(fetch(METADATA_TOPIC, last_fetched_epoch=0), 12, _fetch_codes)
    yield from _requests_of_both()


def _requests_of_both() -> Iterator[DeniedRequest]:
    """Yields requests that brokers and controllers serve."""
    yield DeniedRequest(describe_all_acls(), 3, _top_code)
    new = CreatableTopic(name="of-denied-client", num_partitions=1, replication_factor=1)
    created = CreateTopicsRequest(topics=[new], timeout_ms=1_000)
    yield DeniedRequest(created, 7, _topic_codes, is_change=True)
    everything = AclCreation(
        resource_type=2,
        resource_name="*",
        resource_pattern_type=3,
        principal=f"User:{USER}",
        host="*",
        operation=2,
        permission_type=3,
    )
    yield DeniedRequest(CreateAclsRequest(creations=[everything]), 3, _acl_codes, is_change=True)


def _top_code(response: Any) -> list[int]:
    return [response.error_code]


def _topic_codes(response: Any) -> list[int]:
    return [topic.error_code for topic in response.topics]


def _produce_codes(response: Any) -> list[int]:
    return [
        partition.error_code
        for topic in response.responses
        for partition in topic.partition_responses
    ]


def _fetch_codes(response: Any) -> list[int]:
    return [
        response.error_code or partition.error_code
        for topic in response.responses
        for partition in topic.partitions
    ] or [response.error_code]


def _acl_codes(response: Any) -> list[int]:
    return [result.error_code for result in response.results]
