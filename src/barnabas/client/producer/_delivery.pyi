import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context
from typing import Any

from barnabas.client._message import Message
from barnabas.client.errors import KafkaError
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._intake import Content, Headers, Intake
from barnabas.client.producer.outbox import OnDelivery

COMPILED: bool

class AioIntake(Intake):
    is_due: bool
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        accumulator: Accumulator,
        on_delivery: OnDelivery | None = None,
        intercept: Callable[..., tuple[Any, ...]] | None = None,
    ) -> None: ...
    def produce(  # type: ignore[override]
        self,
        topic: str,
        value: Content = None,
        key: Content = None,
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> Awaitable[Delivery]: ...
    def retry(self, delivery: Delivery, *record: Any) -> None: ...

class Delivery:
    def __init__(self, loop: asyncio.AbstractEventLoop, callback: OnDelivery | None) -> None: ...
    def __call__(self, error: KafkaError | None, message: Message) -> None: ...
    def __await__(self) -> Generator[Any, None, Message]: ...
    def done(self) -> bool: ...
    def cancelled(self) -> bool: ...
    def result(self) -> Message: ...
    def exception(self) -> BaseException | None: ...
    def cancel(self, msg: str | None = None) -> bool: ...
    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None: ...
    def remove_done_callback(self, callback: Callable[[Any], object]) -> int: ...
    def get_loop(self) -> asyncio.AbstractEventLoop: ...
