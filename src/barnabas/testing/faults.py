"""Failures on order: what a broker does wrong, for which requests, and how often.

They stand where a request meets its handler. An error is told in the shape of the API's own
answer, in every place where that has an error code, as if the broker had found it itself.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from threading import Lock
from types import TracebackType
from typing import Any, Self

from barnabas.server.request_context import RequestContext
from barnabas.server.handlers import Handler
from barnabas.testing.disk import Disk, FullDisk
from barnabas.testing.effects import Delay, Drop, Effect, Refusal
from barnabas.wire.apis import ApiKey, apis
from barnabas.wire.apis import api as api_of
from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

When = Callable[[Any], bool]
"""Whether a request is meant: given the message, such as a `ProduceRequest`."""


class Faults:
    """The orders of one broker. Of several for one API, the first that is not used up counts.

    An API is named as in Kafka's protocol ("Produce", "OffsetCommit"), an error likewise
    ("NOT_LEADER_OR_FOLLOWER"). Without `times` an order holds until it is lifted: by `clear`, by
    its own `lift`, or by the end of its `with` block.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        """Requests by API, whatever became of them."""
        self.disk = Disk()
        self._orders: tuple[Fault, ...] = ()
        self._lock = Lock()

    def fail(
        self, api: str, error: str, *, times: int | None = None, when: When | None = None
    ) -> "Fault":
        """Answer with an error and do nothing."""
        return self._order(api, times, when, Refusal(_error(error)))

    def delay(
        self, api: str, seconds: float, *, times: int | None = None, when: When | None = None
    ) -> "Fault":
        """Do as asked, and hold the answer back so long by the broker's clock."""
        return self._order(api, times, when, Delay(seconds))

    def drop(
        self,
        api: str,
        *,
        times: int | None = None,
        after: bool = False,
        when: When | None = None,
    ) -> "Fault":
        """Close the connection instead of an answer: at once, or after having done as asked."""
        return self._order(api, times, when, Drop(after=after))

    def fill_disk(self) -> FullDisk:
        """Let no more records be written, as if the disk had no space left."""
        return FullDisk(self.disk)

    def clear(self) -> None:
        """Lift them all."""
        self.disk.is_full = False
        for fault in self._orders:
            fault.lift()

    def let_go(self) -> None:
        """Answer what is held back."""
        for fault in self._orders:
            fault.let_go()

    def around(self, handlers: Mapping[ApiKey, Handler]) -> Mapping[ApiKey, Handler]:
        """The same handlers, with these faults before each."""
        return _Beset(self, handlers)

    def due(self, key: ApiKey, request: Message) -> "Fault | None":
        """What is to befall a request that has come."""
        self.seen[api_of(key).name] += 1
        return next((fault for fault in self._orders if fault.takes(key, request)), None)

    def _order(self, api: str, times: int | None, when: When | None, effect: Effect) -> "Fault":
        fault = Fault(_key(api), times, when, effect, self._lift)
        with self._lock:
            self._orders = (*self._orders, fault)
        return fault

    def _lift(self, fault: "Fault") -> None:
        with self._lock:
            self._orders = tuple(_order for _order in self._orders if _order is not fault)


class Fault:
    """One order; in a `with` block, it holds until the end of that."""

    def __init__(
        self,
        key: ApiKey,
        times: int | None,
        when: When | None,
        effect: Effect,
        lifted: "Callable[[Fault], None]",
    ) -> None:
        self.fired = 0
        """How often it has struck."""
        self._key = key
        self._times = times
        self._when = when
        self._lifted = lifted
        self.answer = effect.answer
        self.let_go = effect.let_go

    def takes(self, key: ApiKey, request: Message) -> bool:
        """Whether it befalls this request; then it counts."""
        if key is not self._key or self.fired == self._times:
            return False
        if self._when is not None and not self._when(request):
            return False
        self.fired += 1
        return True

    def lift(self) -> None:
        """No more of it, and what it holds back is answered."""
        self._lifted(self)
        self.let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self.lift()


class _Beset(Mapping[ApiKey, Handler]):
    """Handlers that faults befall."""

    def __init__(self, faults: Faults, handlers: Mapping[ApiKey, Handler]) -> None:
        self._faults = faults
        self._handlers = handlers

    def __getitem__(self, key: ApiKey) -> Handler:
        faults, handle = self._faults, self._handlers[key]

        async def meet(request: Message, call: RequestContext) -> Message | None:
            fault = faults.due(key, request)
            if fault is not None:
                return await fault.answer(handle, request, call)
            answer: Message | None = await handle(request, call)
            return answer

        return meet

    def __contains__(self, key: object) -> bool:
        return key in self._handlers

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


def _key(name: str) -> ApiKey:
    keys = {api.name: api.key for api in apis()}
    return keys[_known(name, keys, "an API")]


def _error(name: str) -> ErrorCode:
    return ErrorCode[_known(name, ErrorCode.__members__, "an error of the protocol")]


def _known(name: str, known: Mapping[str, object], kind: str) -> str:
    if name in known:
        return name
    nearest = get_close_matches(name, known, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ValueError(f"{name} is not {kind}{hint}")
