"""`barnabas.Producer`: for code without a loop of its own, as `confluent_kafka.Producer` is."""

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.loop_thread import LoopThread
from barnabas.client.producer import making
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._intake import Intake
from barnabas.client.producer.core import ProducerCore
from barnabas.client.producer.outbox import Bell, OnDelivery, Outbox
from barnabas.client.settings import ProducerSettings, producer_settings

_FOREVER = -1


class Producer(Intake):
    """Sends records. Delivery reports come inside `poll` and `flush`, in the calling thread.

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    producer.produce("greetings", "hello", on_delivery=print)
    producer.flush()
    """

    _accumulator: Accumulator
    _settings: ProducerSettings

    def __new__(cls, *_: object, **__: object) -> Self:
        return super().__new__(cls)

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        settings = producer_settings(merged(conf, more))
        self._settings = settings
        self._bell = Bell()
        self._accumulator = making.accumulator(settings, self._wake)
        super().__init__(self._accumulator, settings.on_delivery, None)
        self._outbox = Outbox(self._accumulator, self._bell.ring)
        self._is_closed = False
        self._thread = LoopThread.shared()
        try:
            self._core = self._thread.run(self._start())
        except BaseException:
            self._thread.release()
            raise

    async def _start(self) -> ProducerCore:
        return ProducerCore(self._settings, self._accumulator, self._outbox, self._tell)

    def _wake(self) -> None:
        self._thread.call(self._core.step)

    def _tell(self, error: KafkaError) -> None:
        """News of the connections, for error_cb."""
        callback = self._settings.error_cb
        if callback is not None:
            self._outbox.put(lambda: callback(error))

    def produce_batch(
        self,
        topic: str,
        messages: Sequence[Mapping[str, Any]],
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> int:
        """Produce dictionaries with `produce`'s arguments; how many were taken.

        What could not be taken has its error under `_error`.
        """
        taken = 0
        for message in messages:
            try:
                self.produce(
                    topic,
                    message.get("value"),
                    message.get("key"),
                    message.get("partition", partition),
                    message.get("callback") or callback,
                    message.get("on_delivery") or on_delivery,
                    message.get("timestamp", 0),
                    message.get("headers"),
                )
            except BufferError:
                _mark(message, KafkaError(KafkaError._QUEUE_FULL))
            except KafkaException as failure:
                _mark(message, failure.args[0])
            else:
                taken += 1
        return taken

    def poll(self, timeout: float = _FOREVER) -> int:
        """Run callbacks; if there are none to run, wait for the first. How many were run."""
        self._require_open()
        deadline_s = _deadline(timeout)
        while True:
            served = self._outbox.serve()
            if served or not self._wait(deadline_s):
                return served

    def flush(self, timeout: float = _FOREVER) -> int:
        """Send all that was produced, now, and wait for it; how much is left after the time."""
        self._require_open()
        deadline_s = _deadline(timeout)
        self._accumulator.flush(True)
        try:
            self._wake()
            while True:
                self._outbox.serve()
                if not len(self) or not self._wait(deadline_s):
                    return len(self)
        finally:
            self._accumulator.flush(False)

    def __len__(self) -> int:
        """Records whose delivery is not known, or not yet reported."""
        return self._accumulator.held_records + len(self._outbox)

    def __bool__(self) -> bool:
        return True

    def close(self, timeout: float = _FOREVER) -> bool:
        """Flush, and hang up. Nothing can be produced afterwards."""
        if self._is_closed:
            return True
        self.shut()
        try:
            left = self.flush(timeout)
        finally:
            self._is_closed = True
            self._thread.run(self._core.close())
            self._thread.release()
        return left == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _wait(self, deadline_s: float | None) -> bool:
        """Wait for the bell; whether there was time left to."""
        if deadline_s is None:
            self._bell.wait(None)
            return True
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        self._bell.wait(left_s)
        return True

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Producer has been closed")


def merged(conf: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a dictionary and those in keywords, which win."""
    if conf is not None and not isinstance(conf, Mapping):
        raise TypeError("expected configuration dict")
    return {**(conf or {}), **more}


def _deadline(timeout: float) -> float | None:
    return None if timeout is None or timeout < 0 else time.monotonic() + timeout


def _mark(message: Mapping[str, Any], error: KafkaError) -> None:
    if isinstance(message, dict):
        message["_error"] = error
