from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer.delivery_reports import OnDelivery

COMPILED: bool

Content = str | bytes | None
Headers = Mapping[str, Content] | Sequence[tuple[str, Content]]

class ProducerBase:
    def __init__(
        self,
        accumulator: RecordAccumulator,
        on_delivery: OnDelivery | None = None,
        intercept: Callable[..., tuple[Any, ...]] | None = None,
        wait_for_space: Callable[[Callable[[], object]], object] | None = None,
    ) -> None: ...
    def produce(
        self,
        topic: str,
        value: Content = None,
        key: Content = None,
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None: ...
    def raise_produce_error(self) -> None: ...
    def set_produce_error(self, error: BaseException | None) -> None: ...
