"""A producer that serializes keys and values on their way in."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from barnabas.client.producer import Producer
from barnabas.client.serializing import Serdes
from barnabas.error import KeySerializationError, ValueSerializationError
from barnabas.serialization import MessageField, SerializationContext

K = TypeVar("K")
V = TypeVar("V")


class SerializingProducer(Producer, Generic[K, V]):
    """As Producer, with `key.serializer` and `value.serializer` in its settings."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._serdes, rest = Serdes.take(conf, "serializer")
        try:
            super().__init__(rest)
            self._serdes.connect(self.cluster_id)
        except BaseException:
            self._serdes.close()
            raise

    def produce(  # type: ignore[override]
        self,
        topic: str,
        key: K | None = None,
        value: V | None = None,
        partition: int = -1,
        on_delivery: Callable[[Any, Any], None] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """As Producer.produce(), but with the key first, and both of them objects.

        KeySerializationError and ValueSerializationError carry what a serializer raised.
        """
        if self._is_closed:
            raise RuntimeError("Producer has been closed")
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        key_bytes: Any = key
        value_bytes: Any = value
        context = SerializationContext(topic, MessageField.KEY, headers)
        if self._serdes.key is not None:
            try:
                key_bytes = self._serdes.key(key, context)
            except Exception as problem:
                raise KeySerializationError(problem) from problem
        context.field = MessageField.VALUE
        if self._serdes.value is not None:
            try:
                value_bytes = self._serdes.value(value, context)
            except Exception as problem:
                raise ValueSerializationError(problem) from problem
        super().produce(
            topic,
            value_bytes,
            key_bytes,
            partition=partition,
            on_delivery=on_delivery,
            timestamp=timestamp,
            headers=headers,
        )

    def close(self, timeout: float = -1) -> bool:
        """Close the producer, then the serializers that were built for it."""
        closed = super().close(timeout)
        self._serdes.close()
        return closed
