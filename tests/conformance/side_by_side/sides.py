"""Both brokers get the same requests, and their responses are made comparable.

Values that differ between any two clusters are replaced (ids, ports, directories); everything else
must be equal: codes and their messages, offsets, epochs, and the bytes of records.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from socket import socket
from typing import Any

from tests.conformance.brokers import Broker, connect, read_frame
from tests.conformance.side_by_side.texts import is_same_text

from barnabas.wire.apis import api
from barnabas.wire.errors import KafkaError
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message, Struct
from barnabas.wire.uuid import ZERO

NO_RESPONSE = "no response"
DEADLINE_S = 5
UNKNOWN_SERVER_ERROR = -1
"""Where Kafka responds with this error, any more specific error is accepted."""


class Side:
    """One of the compared brokers, with a connection for plain requests."""

    def __init__(self, name: str, broker: Broker, *, from_host: str = "127.0.0.1") -> None:
        self.name = name
        self.broker = broker
        self._from_host = from_host
        self._connection = self._connect()
        self._supported_versions: dict[int, range] = {}

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> socket:
        return connect(self.broker.port, deadline_s=DEADLINE_S, from_host=self._from_host)

    def send(self, request: Message, version: int) -> Message | None:
        """Sends a request and returns its response, or None if the broker closes the connection."""
        return decode_response(self.send_frame(encode_request(request, version)), request, version)

    def send_frame(self, frame: bytes) -> bytes:
        self._connection.sendall(frame)
        try:
            response = read_frame(self._connection)
        except (ConnectionError, TimeoutError):
            response = b""
        if not response:
            self._connection.close()
            self._connection = self._connect()
        return response

    def supported_versions(self, key: int) -> range:
        """Returns the versions of an API that the broker supports by ApiVersions."""
        if not self._supported_versions:
            request = ApiVersionsRequest(client_software_name="same", client_software_version="1")
            response: Any = self.send(request, 4)
            self._supported_versions = {
                api_key.api_key: range(api_key.min_version, api_key.max_version + 1)
                for api_key in response.api_keys
            }
        return self._supported_versions[key]

    def topic_id(self, topic: str) -> bytes:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        request.allow_auto_topic_creation = False
        response: Any = self.send(request, 12)
        return bytes(response.topics[0].topic_id)


Sides = Sequence[Side]
CORRELATION_ID = 7


def encode_request(request: Message, version: int) -> bytes:
    out = Outgoing()
    write_request_header(RequestHeader(request.API_KEY, version, CORRELATION_ID, "same"), out)
    request.writer(version)(request, out)
    return struct.pack(">i", len(out)) + bytes(out)


def decode_response(response: bytes, request: Message, version: int) -> Message | None:
    if not response:
        return None
    key = request.API_KEY
    header, position = read_response_header(response, key, version)
    assert header.correlation_id == CORRELATION_ID
    return api(key).response.read_exactly(response, version, position)


def assert_same_responses(
    sides: Sides,
    build: Callable[[Side, int], Message | None],
    *,
    ignoring: Mapping[str, str] | None = None,
) -> dict[int, Any]:
    """Sends a request to both brokers in every version of Kafka; returns its responses by version.

    `build` returns the request for a side and a version, or None to skip that version; a version
    that cannot encode the request is skipped too. `ignoring` has the fields that may differ, with
    the reason.
    """
    responses: dict[int, Any] = {}
    versions_by_difference: dict[str, list[int]] = {}
    probe = build(sides[0], -1)
    assert probe is not None
    for version in sides[0].supported_versions(probe.API_KEY):
        comparable = []
        for side in sides:
            request = build(side, version)
            if request is None or not is_encodable(request, version):
                break
            response = side.send(request, version)
            comparable.append(
                NO_RESPONSE if response is None else to_comparable(response, side, ignoring or {})
            )
        else:
            kafka, barnabas = comparable
            responses[version] = kafka
            for difference in differences(kafka, barnabas):
                versions_by_difference.setdefault(difference, []).append(version)
    assert responses, "no version can encode this request"
    assert not versions_by_difference, "\n".join(
        f"v{versions[0]}-{versions[-1]} {difference}"
        for difference, versions in versions_by_difference.items()
    )
    return responses


def is_encodable(request: Message, version: int) -> bool:
    try:
        request.writer(version)(request, Outgoing())
    except KafkaError:
        return False
    return True


def to_comparable(value: Any, side: Side, ignoring: Mapping[str, str]) -> Any:
    if isinstance(value, Struct):
        fields = {
            name: ignoring[name]
            if name in ignoring
            else comparable_field(name, getattr(value, name), side, ignoring)
            for name in shown_fields(value)
        }
        if value.unknown_tags:
            fields["unknown_tags"] = value.unknown_tags
        return fields
    if isinstance(value, list):
        comparable = [to_comparable(element, side, ignoring) for element in value]
        # Kafka returns many lists in the order of a hash table.
        return sorted(comparable, key=repr)
    if isinstance(value, memoryview):
        return drop_partial_batch(bytes(value))
    return value


def shown_fields(struct: Struct) -> list[str]:
    """Returns the fields that anyone looks at: a message without an error is not read."""
    is_success = getattr(struct, "error_code", None) == 0
    return [name for name in struct.DECLARED if not (is_success and name == "error_message")]


def drop_partial_batch(records: bytes) -> bytes:
    """Drops a partial batch at the end of a response, which clients ignore."""
    end = 0
    while end + 12 <= len(records):
        size = 12 + int.from_bytes(records[end + 8 : end + 12], "big")
        if end + size > len(records):
            break
        end += size
    return records[:end]


def comparable_field(name: str, value: Any, side: Side, ignoring: Mapping[str, str]) -> Any:
    """Returns the value of a field, or a placeholder if it differs between any two clusters."""
    match name:
        case "documentation":
            return "text"
        case "cluster_id":
            return "cluster" if value else value
        case "topic_id" | "replica_directory_id":
            return "zero" if value == ZERO else "id"
        case "log_append_time_ms" | "last_fetch_timestamp" | "last_caught_up_timestamp":
            return "now" if value > 0 else value
        case "session_id":
            return "session" if value else value
        case "producer_id":
            return "producer" if value >= 0 else value
        case "total_bytes" | "usable_bytes":
            return "bytes" if value > 0 else value
        case "finalized_features_epoch":
            return "epoch" if value >= 0 else value
        case "port":
            return "port" if value == side.broker.port else value
        case "log_dir":
            return "log" if value == str(side.broker.data) else value
        case _:
            return to_comparable(value, side, ignoring)


def differences(kafka: Any, barnabas: Any, path: str = "response") -> Iterator[str]:
    if isinstance(kafka, dict) and isinstance(barnabas, dict) and kafka.keys() == barnabas.keys():
        for name in kafka:
            yield from differences(kafka[name], barnabas[name], f"{path}.{name}")
    elif isinstance(kafka, list) and isinstance(barnabas, list) and len(kafka) == len(barnabas):
        for index, (left, right) in enumerate(zip(kafka, barnabas, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif path.endswith("error_message"):
        if not is_same_text(kafka, barnabas):
            yield f"{path}: Kafka {kafka!r}, Barnabas {barnabas!r}"
    elif kafka != barnabas and not (
        path.endswith("error_code") and kafka == UNKNOWN_SERVER_ERROR and barnabas
    ):
        yield f"{path}: Kafka {kafka!r:.300}, Barnabas {barnabas!r:.300}"
