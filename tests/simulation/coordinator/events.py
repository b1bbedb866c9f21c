"""The events of the simulation of groups and transactions."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.wire.uuid import ZERO as NO_ID

if TYPE_CHECKING:
    from tests.simulation.coordinator.clients.client import Client
    from tests.simulation.coordinator.network import SentRequest

TopicPartition = tuple[str, int]


@dataclass(slots=True, frozen=True)
class _Message:
    """An event of a request or its response."""

    sent: "SentRequest"

    @property
    def digest_key(self) -> str:
        return f"{type(self).__name__} {self.sent.number}"

    def __str__(self) -> str:
        sign = _SIGNS[type(self).__name__]
        shows_response = isinstance(self, Responded)
        message = self.sent.response if shows_response else self.sent.request
        return f"{self.sent.client.name:<12} {sign} #{self.sent.number} {brief(message)}"


class Delivered(_Message):
    """The broker has received the request."""


class Responded(_Message):
    """The broker has responded; the response may be lost."""


class Abandoned(_Message):
    """The client does not wait for the response any more."""


_SIGNS = {"Delivered": "-->", "Responded": "<--", "Abandoned": "-X-"}


@dataclass(slots=True, frozen=True)
class _OwnershipChange:
    member: "Client"
    group_id: str
    partitions: Collection[TopicPartition]

    @property
    def digest_key(self) -> str:
        return f"{type(self).__name__} {self.member.name} {sorted(self.partitions)}"

    def __str__(self) -> str:
        return f"{self.member.name:<12} {type(self).__name__.lower()} {sorted(self.partitions)}"


class Claimed(_OwnershipChange):
    """A member owns these partitions, in its own view."""


class Released(_OwnershipChange):
    """A member does not own these partitions any more, in its own view."""


@dataclass(slots=True, frozen=True)
class Leased:
    """The time until which a member may rely on its partitions."""

    member: "Client"
    until_ms: int

    @property
    def digest_key(self) -> str:
        return f"leased {self.member.name} {self.until_ms}"

    def __str__(self) -> str:
        return f"{self.member.name:<12} has a lease until {self.until_ms % 10_000_000 / 1000:.3f}"


@dataclass(slots=True, frozen=True)
class Ended:
    """A client has crashed or stopped."""

    client: "Client"
    reason: str

    @property
    def digest_key(self) -> str:
        return f"{self.client.name} {self.reason}"

    def __str__(self) -> str:
        return f"{self.client.name:<12} {self.reason}"


@dataclass(slots=True, frozen=True)
class TransactionBegan:
    tag: str
    inputs: tuple[tuple[int, int], ...]
    """Partition and offset of the input records that it processes."""

    @property
    def digest_key(self) -> str:
        return f"began {self.tag}"

    def __str__(self) -> str:
        return f"{self.tag:<12} begins a transaction over {self.inputs}"


@dataclass(slots=True, frozen=True)
class TransactionEnded:
    """A transaction has ended, according to the response to its producer."""

    tag: str
    committed: bool

    @property
    def digest_key(self) -> str:
        return f"ended {self.tag} {self.committed}"

    def __str__(self) -> str:
        return f"{self.tag:<12} {'committed' if self.committed else 'aborted'} its transaction"


@dataclass(slots=True, frozen=True)
class UnderMinIsr:
    """A topic is under min ISR: no record can be appended to it for a while."""

    topic: str

    @property
    def digest_key(self) -> str:
        return f"under min ISR {self.topic}"

    def __str__(self) -> str:
        return f"{'faults':<12} {self.topic} is under min ISR"


@dataclass(slots=True, frozen=True)
class _ShardMoved:
    topic: str
    index: int
    state: Any
    end_offset: int

    @property
    def digest_key(self) -> str:
        return f"{type(self).__name__} {self.topic} {self.index} {self.end_offset}"

    def __str__(self) -> str:
        what = "is lost" if isinstance(self, ShardLost) else "is loaded"
        return f"{'node':<12} {self.topic}-{self.index} {what} at offset {self.end_offset}"


class ShardLost(_ShardMoved):
    """A coordinator is about to lose its state; the log ends at `end_offset`."""


class ShardLoaded(_ShardMoved):
    """A coordinator has loaded its state from the log."""


_SHOWN_EMPTY = {"topic_partitions"}


def brief(message: Any) -> str:
    """Returns a message in one line, without fields that have their default."""
    if message is None:
        return "nothing"
    return f"{type(message).__name__}({_fields(message)})"


def _fields(struct: Any) -> str:
    shown = []
    for name in struct.DECLARED:
        value = getattr(struct, name)
        if value in (None, "", -1, 0, False, NO_ID) or (value == [] and name not in _SHOWN_EMPTY):
            continue
        shown.append(f"{name}={_value(value)}")
    return " ".join(shown)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if hasattr(value, "DECLARED"):
        return "{" + _fields(value) + "}"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{bytes(value[:4])!r}" + (".." if len(value) > 4 else "")
    return str(value)
