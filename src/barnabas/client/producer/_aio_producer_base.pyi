import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context
from typing import Any

from barnabas.client._message import Message
from barnabas.client.errors import KafkaError
from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._producer_base import Content, Headers, ProducerBase
from barnabas.client.producer.delivery_reports import OnDelivery

COMPILED: bool

class AioProducerBase(ProducerBase):
    is_step_scheduled: bool
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        accumulator: RecordAccumulator,
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
    ) -> Awaitable[DeliveryFuture]: ...
    def retry_append(self, delivery: DeliveryFuture, *record: Any) -> None: ...

class DeliveryFuture:
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
