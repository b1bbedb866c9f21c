from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer.outbox import OnDelivery

COMPILED: bool

Content = str | bytes | None
Headers = Mapping[str, Content] | Sequence[tuple[str, Content]]

class Intake:
    def __init__(
        self,
        accumulator: Accumulator,
        on_delivery: OnDelivery | None = None,
        intercept: Callable[..., tuple[Any, ...]] | None = None,
        make_room: Callable[[Callable[[], object]], object] | None = None,
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
    def check(self) -> None: ...
    def refuse(self, failure: BaseException | None) -> None: ...
