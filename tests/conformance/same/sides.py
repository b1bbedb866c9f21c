"""Two brokers asked the same thing, and their answers made comparable.

What must differ between two clusters is replaced by a word (ids, ports, directories, texts meant
for people); everything else must be equal: codes, offsets, epochs, and the bytes of records.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.conformance.brokers import Broker, connect, read_frame

from barnabas.wire.apis import api
from barnabas.wire.errors import KafkaError
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message, Struct
from barnabas.wire.uuid import ZERO

NO_ANSWER = "no answer"
DEADLINE_S = 5
FAULT = -1
"""UNKNOWN_SERVER_ERROR: where Kafka stumbles, any error that says more will do."""


class Side:
    """One broker, and a connection to ask it by hand."""

    def __init__(self, name: str, broker: Broker) -> None:
        self.name = name
        self.broker = broker
        self._connection = connect(broker.port, deadline_s=DEADLINE_S)
        self._served: dict[int, range] = {}

    def close(self) -> None:
        self._connection.close()

    def ask(self, request: Message, version: int) -> Message | None:
        """The answer, read to its last byte; None when there is none."""
        return read_answer(self.ask_bytes(framed(request, version)), request, version)

    def ask_bytes(self, frame: bytes) -> bytes:
        self._connection.sendall(frame)
        try:
            answer = read_frame(self._connection)
        except (ConnectionError, TimeoutError):
            answer = b""
        if not answer:
            self._connection.close()
            self._connection = connect(self.broker.port, deadline_s=DEADLINE_S)
        return answer

    def served(self, key: int) -> range:
        """The versions of an API that the broker says it speaks."""
        if not self._served:
            asked = ApiVersionsRequest(client_software_name="same", client_software_version="1")
            answer: Any = self.ask(asked, 4)
            self._served = {
                each.api_key: range(each.min_version, each.max_version + 1)
                for each in answer.api_keys
            }
        return self._served[key]

    def topic_id(self, topic: str) -> bytes:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        asked.allow_auto_topic_creation = False
        answer: Any = self.ask(asked, 12)
        return bytes(answer.topics[0].topic_id)


Sides = Sequence[Side]
CORRELATION_ID = 7


def framed(request: Message, version: int) -> bytes:
    out = Outgoing()
    write_request_header(RequestHeader(request.API_KEY, version, CORRELATION_ID, "same"), out)
    request.writer(version)(request, out)
    return struct.pack(">i", len(out)) + bytes(out)


def read_answer(answer: bytes, request: Message, version: int) -> Message | None:
    if not answer:
        return None
    key = request.API_KEY
    header, position = read_response_header(answer, key, version)
    assert header.correlation_id == CORRELATION_ID
    return api(key).response.read_exactly(answer, version, position)


def same(
    sides: Sides,
    build: Callable[[Side, int], Message | None],
    *,
    but: Mapping[str, str] | None = None,
) -> dict[int, Any]:
    """Ask both in every version that Kafka speaks; its answers by version, if ours are the same.

    `build` makes the request for a side and a version, or None to leave that version out; a
    version that cannot carry the request is left out too. `but` names fields that may differ in
    this case, with the reason.
    """
    answers: dict[int, Any] = {}
    found: dict[str, list[int]] = {}
    probe = build(sides[0], -1)
    assert probe is not None
    for version in sides[0].served(probe.API_KEY):
        plain = []
        for side in sides:
            request = build(side, version)
            if request is None or not can_carry(request, version):
                break
            answer = side.ask(request, version)
            plain.append(NO_ANSWER if answer is None else simplified(answer, side, but or {}))
        else:
            kafka, barnabas = plain
            answers[version] = kafka
            for difference in differences(kafka, barnabas):
                found.setdefault(difference, []).append(version)
    assert answers, "no version can carry this request"
    assert not found, "\n".join(f"v{vs[0]}-{vs[-1]} {each}" for each, vs in found.items())
    return answers


def can_carry(request: Message, version: int) -> bool:
    try:
        request.writer(version)(request, Outgoing())
    except KafkaError:
        return False
    return True


def simplified(value: Any, side: Side, but: Mapping[str, str]) -> Any:
    if isinstance(value, Struct):
        fields = {
            name: but[name] if name in but else named(name, getattr(value, name), side, but)
            for name in value.DECLARED
        }
        if value.unknown_tags:
            fields["unknown_tags"] = value.unknown_tags
        return fields
    if isinstance(value, list):
        plain = [simplified(each, side, but) for each in value]
        # Kafka answers many lists in the order of a hash table.
        return sorted(plain, key=repr)
    if isinstance(value, memoryview):
        return whole_batches(bytes(value))
    return value


def whole_batches(records: bytes) -> bytes:
    """Without what Kafka may cut in the middle at the end of an answer; clients ignore it."""
    end = 0
    while end + 12 <= len(records):
        size = 12 + int.from_bytes(records[end + 8 : end + 12], "big")
        if end + size > len(records):
            break
        end += size
    return records[:end]


def named(name: str, value: Any, side: Side, but: Mapping[str, str]) -> Any:
    """The value of a field, or a word for what differs between any two clusters."""
    match name:
        case "error_message" | "batch_index_error_message" | "documentation":
            return "perhaps a text"
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
            return simplified(value, side, but)


def differences(kafka: Any, barnabas: Any, path: str = "answer") -> Iterator[str]:
    if isinstance(kafka, dict) and isinstance(barnabas, dict) and kafka.keys() == barnabas.keys():
        for name in kafka:
            yield from differences(kafka[name], barnabas[name], f"{path}.{name}")
    elif isinstance(kafka, list) and isinstance(barnabas, list) and len(kafka) == len(barnabas):
        for index, (left, right) in enumerate(zip(kafka, barnabas, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif kafka != barnabas and not (path.endswith("error_code") and kafka == FAULT and barnabas):
        yield f"{path}: Kafka {kafka!r:.300}, Barnabas {barnabas!r:.300}"
