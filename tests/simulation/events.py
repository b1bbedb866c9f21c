"""What happens in a run. Every checker sees every event; the last of them are the trace."""

import zlib
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.wire.uuid import ZERO as NO_ID

if TYPE_CHECKING:
    from tests.simulation.clients.client import Client
    from tests.simulation.clock import SimulatedLoop
    from tests.simulation.network import Exchange

TopicPartition = tuple[str, int]

EVENTS_KEPT = 20_000


class Violation(AssertionError):  # noqa: N818 - the domain's word for it
    """A promise was broken."""

    promise = "?"
    """The checker that found out."""


class Checker(Protocol):
    """Watches over one promise."""

    def see(self, event: Any, now_ms: int) -> None:
        """Violation if the promise is broken by it."""


class Events:
    """Tells everybody of what happens, and ends the run at the first violation."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop
        self.checkers: list[Checker] = []
        self.trace: deque[tuple[int, Any]] = deque(maxlen=EVENTS_KEPT)
        self.count = 0
        self.digest = 0
        """The same for two runs in which the same happened."""
        self.failure: BaseException | None = None
        self.over = loop.create_future()
        """Done when the run has failed."""

    def tell(self, event: Any) -> None:
        now_ms = self._loop.now_ms
        self.count += 1
        self.digest = zlib.crc32(f"{now_ms} {event.mark}".encode(), self.digest)
        self.trace.append((now_ms, event))
        if self.failure is not None:
            return
        for checker in self.checkers:
            self.checked(checker.see, event, now_ms)

    def checked(self, look: Callable[..., None], *args: object) -> None:
        """Let a checker look; what it finds ends the run."""
        try:
            look(*args)
        except Violation as violation:
            self.fail(violation, type(getattr(look, "__self__", look)).__name__)

    def note(self, who: str, text: str) -> None:
        self.tell(Note(who, text))

    def fail(self, failure: BaseException, promise: str = "?") -> None:
        """End the run. What failed first is what counts."""
        if self.failure is None:
            if isinstance(failure, Violation):
                failure.promise = promise
            self.failure = failure
            self.note("FAILED", f"{type(failure).__name__}: {failure}")
            if not self.over.done():
                self.over.set_result(None)


@dataclass(slots=True, frozen=True)
class Note:
    """For the reader of a trace."""

    who: str
    text: str

    @property
    def mark(self) -> str:
        return f"{self.who} {self.text}"

    def __str__(self) -> str:
        return f"{self.who:<12} {self.text}"


@dataclass(slots=True, frozen=True)
class _Message:
    """Something happened to a request or its answer."""

    exchange: "Exchange"

    @property
    def mark(self) -> str:
        return f"{type(self).__name__} {self.exchange.number}"

    def __str__(self) -> str:
        sign = _SIGNS[type(self).__name__]
        shows_answer = isinstance(self, Answered)
        message = self.exchange.response if shows_answer else self.exchange.request
        return f"{self.exchange.client.name:<12} {sign} #{self.exchange.number} {brief(message)}"


class Delivered(_Message):
    """The request has reached the node."""


class Answered(_Message):
    """The node has answered; nobody may ever hear of it."""


class GivenUp(_Message):
    """The client waits for it no longer."""


_SIGNS = {"Delivered": "-->", "Answered": "<--", "GivenUp": "-X-"}


@dataclass(slots=True, frozen=True)
class _Holding:
    member: "Client"
    group_id: str
    partitions: Collection[TopicPartition]

    @property
    def mark(self) -> str:
        return f"{type(self).__name__} {self.member.name} {sorted(self.partitions)}"

    def __str__(self) -> str:
        return f"{self.member.name:<12} {type(self).__name__.lower()} {sorted(self.partitions)}"


class Claimed(_Holding):
    """A member believes from now on that it owns these partitions."""


class Released(_Holding):
    """A member believes so no longer."""


@dataclass(slots=True, frozen=True)
class Leased:
    """Until when a member may believe that it owns what it claimed."""

    member: "Client"
    until_ms: int

    @property
    def mark(self) -> str:
        return f"leased {self.member.name} {self.until_ms}"

    def __str__(self) -> str:
        return f"{self.member.name:<12} has a lease until {self.until_ms % 10_000_000 / 1000:.3f}"


@dataclass(slots=True, frozen=True)
class Ended:
    """A client is gone: it crashed, or stopped."""

    client: "Client"
    how: str

    @property
    def mark(self) -> str:
        return f"{self.client.name} {self.how}"

    def __str__(self) -> str:
        return f"{self.client.name:<12} {self.how}"


@dataclass(slots=True, frozen=True)
class TransactionBegan:
    tag: str
    inputs: tuple[tuple[int, int], ...]
    """Partition and offset of the input records that it processes."""

    @property
    def mark(self) -> str:
        return f"began {self.tag}"

    def __str__(self) -> str:
        return f"{self.tag:<12} begins a transaction over {self.inputs}"


@dataclass(slots=True, frozen=True)
class TransactionEnded:
    """As its producer was told."""

    tag: str
    committed: bool

    @property
    def mark(self) -> str:
        return f"ended {self.tag} {self.committed}"

    def __str__(self) -> str:
        return f"{self.tag:<12} {'committed' if self.committed else 'aborted'} its transaction"


@dataclass(slots=True, frozen=True)
class WritesRefused:
    """A topic has too few replicas: for a while nothing can be appended to it."""

    topic: str

    @property
    def mark(self) -> str:
        return f"refused {self.topic}"

    def __str__(self) -> str:
        return f"{'faults':<12} {self.topic} has too few replicas"


@dataclass(slots=True, frozen=True)
class _ShardMoved:
    topic: str
    index: int
    state: Any
    end_offset: int

    @property
    def mark(self) -> str:
        return f"{type(self).__name__} {self.topic} {self.index} {self.end_offset}"

    def __str__(self) -> str:
        what = "is lost" if isinstance(self, ShardLost) else "is loaded"
        return f"{'node':<12} {self.topic}-{self.index} {what} at offset {self.end_offset}"


class ShardLost(_ShardMoved):
    """A coordinator's state is about to go; the log ends at `end_offset`."""


class ShardLoaded(_ShardMoved):
    """It has been loaded from the log."""


_TOLD_EMPTY = {"topic_partitions"}


def brief(message: Any) -> str:
    """A message in a line: its fields that say something."""
    if message is None:
        return "nothing"
    return f"{type(message).__name__}({_fields(message)})"


def _fields(struct: Any) -> str:
    shown = []
    for name in struct.DECLARED:
        value = getattr(struct, name)
        if value in (None, "", -1, 0, False, NO_ID) or (value == [] and name not in _TOLD_EMPTY):
            continue
        shown.append(f"{name}={_value(value)}")
    return " ".join(shown)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if hasattr(value, "DECLARED"):
        return "{" + _fields(value) + "}"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{bytes(value[:4])!r}" + (".." if len(value) > 4 else "")
    return str(value)
