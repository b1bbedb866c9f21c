"""Conversations: several requests that build on each other, held with both brokers and compared.

A conversation is written once and held with each side; what was answered is kept as it came and
made comparable at the end, when it is known which ids a broker made up.
"""

import re
import struct
from collections.abc import Callable, Iterator
from socket import socket
from typing import Any

from tests.conformance.brokers import connect, read_frame
from tests.conformance.same.sides import (
    DEADLINE_S,
    NO_ANSWER,
    Side,
    Sides,
    can_carry,
    differences,
    framed,
    named,
    read_answer,
)
from tests.wait import wait_until

from barnabas.wire.schema import Message, Struct

NOT_YET = frozenset((14, 15, 16, 51))
"""Loading, not available, not the coordinator, concurrent transactions: a client asks again."""

MADE_UP = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[\w-]{22}$")
"""Ids of members that came by without being given a word: in either form of a UUID."""

BATCH_HEADER = struct.Struct(">qiiBIHiqqqhii")

ENDING = frozenset(("PrepareCommit", "PrepareAbort"))


class Talk:
    """A conversation with one side, in the versions that `model` speaks."""

    def __init__(self, side: Side, model: Side | None = None) -> None:
        self.side = side
        self._model = model or side
        self._heard: list[tuple[str, Any]] = []
        self._words: dict[object, str] = {}
        self._calls: list[Call] = []

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The answer, which the other side must give too."""
        asked = newest(request) if version is None else version
        answer = self.side.ask(request, asked)
        self._heard.append((label(request, asked), answer))
        return answer

    def ask_in_all_versions(self, request: Message, *, start: int = 0) -> None:
        """For requests that change nothing: whatever version can carry it asks."""
        for version in self.served(request):
            if version >= start and can_carry(request, version):
                self.ask(request, version)

    def served(self, request: type[Message] | Message) -> range:
        return self._model.served(request.API_KEY)

    def call(self, request: Message, version: int | None = None) -> "Call":
        """Ask on a connection of its own and do not wait: joins wait for others to join."""
        asked = newest(request) if version is None else version
        self._calls.append(Call(self, request, asked))
        return self._calls[-1]

    def ask_patiently(self, request: Message, version: int | None = None) -> Any:
        """Ask as a client does: again while a transaction before this one is being ended."""
        asked = newest(request) if version is None else version
        return self.ask_until(lambda: request, asked, is_settled)

    def ask_until(
        self, build: Callable[[], Message], version: int, is_there: Callable[[Any], bool]
    ) -> Any:
        """Ask until the answer is as it must be; only that one is compared."""
        answers: list[Any] = []

        def asked() -> bool:
            answers.append(self.side.ask(build(), version))
            return is_there(answers[-1])

        said = label(build(), version)
        wait_until(asked, f"{said} is answered as it must be", DEADLINE_S)
        self._heard.append((said, answers[-1]))
        return answers[-1]

    def name(self, made_up: object, word: str) -> None:
        """From now on, and before: `word` stands for an id that the broker chose."""
        self._words[made_up] = word

    def heard(self, request_label: str, answer: Any) -> None:
        self._heard.append((request_label, answer))

    def told(self) -> Iterator[tuple[str, Any]]:
        """Every answer in a form that the other side's can be compared with."""
        for number, (said, answer) in enumerate(self._heard, start=1):
            yield f"{number}. {said}", NO_ANSWER if answer is None else self._plain("", answer)

    def close(self) -> None:
        for call in self._calls:
            call.close()

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Struct):
            return {each: self._plain(each, getattr(value, each)) for each in value.DECLARED}
        if isinstance(value, list):
            return sorted((self._plain(name, each) for each in value), key=repr)
        if isinstance(value, memoryview):
            return list(batches(bytes(value)))
        if isinstance(value, str | bytes) and value in self._words:
            return self._words[value]
        match name:
            case "member_id" | "leader":
                return MADE_UP.sub("uuid", value) if value else value
            case "producer_id" if value in self._words:
                return self._words[value]
            case "transaction_start_time_ms" | "last_timestamp":
                return "a time" if value > 0 else value
            case _:
                return named(name, value, self.side, {})


class Call:
    """A question that may be answered later."""

    def __init__(self, talk: Talk, request: Message, version: int) -> None:
        self._talk = talk
        self._request = request
        self._version = version
        self._connection: socket = connect(talk.side.broker.port, deadline_s=DEADLINE_S)
        self._connection.sendall(framed(request, version))

    def answer(self) -> Any:
        try:
            frame = read_frame(self._connection)
        except (ConnectionError, TimeoutError):
            frame = b""
        answer = read_answer(frame, self._request, self._version)
        self._talk.heard(label(self._request, self._version), answer)
        return answer

    def close(self) -> None:
        self._connection.close()


def agree(sides: Sides, conversation: Callable[[Talk], None]) -> None:
    """Hold the conversation with both and compare every answer."""
    talks = []
    for side in sides:
        talk = Talk(side, sides[0])
        try:
            conversation(talk)
        finally:
            talk.close()
        talks.append(list(talk.told()))
    kafka, barnabas = talks
    assert [said for said, _ in kafka] == [said for said, _ in barnabas]
    found = [
        difference
        for (said, expected), (_, got) in zip(kafka, barnabas, strict=True)
        for difference in differences(expected, got, said)
    ]
    assert not found, "\n".join(found)


def is_settled(answer: Any) -> bool:
    """Whether no code anywhere in the answer says to come again, and no transaction is ending."""
    if isinstance(answer, Struct):
        values = ((name, getattr(answer, name)) for name in answer.DECLARED)
        return all(
            value not in NOT_YET if name.endswith("error_code") else is_settled(value)
            for name, value in values
        )
    if isinstance(answer, list):
        return all(map(is_settled, answer))
    return answer not in ENDING


def batches(records: bytes) -> Iterator[dict[str, Any]]:
    """Whole batches without what is a broker's own: producer ids, the times of markers."""
    position = 0
    while position + BATCH_HEADER.size <= len(records):
        offset, length, _, _, _, attributes, last, _, _, _, epoch, sequence, count = (
            BATCH_HEADER.unpack_from(records, position)
        )
        end = position + 12 + length
        yield {
            "base_offset": offset,
            "attributes": attributes,
            "last_offset_delta": last,
            "producer_epoch": epoch,
            "base_sequence": sequence,
            "count": count,
            "records": records[position + BATCH_HEADER.size : end],
        }
        position = end


def newest(request: Message) -> int:
    return request.STABLE_VERSIONS.max


def label(request: Message, version: int) -> str:
    return f"{type(request).__name__.removesuffix('Request')} v{version}"
