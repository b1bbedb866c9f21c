"""A producer that serializes keys and values."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from barnabas.client.producer import Producer
from barnabas.client.serdes import Serdes, apply_serde
from barnabas.error import KeySerializationError, ValueSerializationError
from barnabas.serialization import MessageField, SerializationContext

K = TypeVar("K")
V = TypeVar("V")


class SerializingProducer(Producer, Generic[K, V]):
    """A Producer with `key.serializer` and `value.serializer` in its settings."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._serdes, rest = Serdes.from_settings(conf, "serializer")
        with self._serdes.closed_on_error():
            super().__init__(rest)
            self._serdes.set_cluster_id_resolver(self.cluster_id)

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
        """Like Producer.produce(), but with the key first, and both of them objects.

        Raises KeySerializationError or ValueSerializationError with what a serializer raised.
        """
        if self._is_closed:
            raise RuntimeError("Producer has been closed")
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        context = SerializationContext(topic, MessageField.KEY, headers)
        key_bytes = apply_serde(self._serdes.key, key, context, KeySerializationError)
        context.field = MessageField.VALUE
        value_bytes = apply_serde(self._serdes.value, value, context, ValueSerializationError)
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
        """Closes the producer, then the serializers that were built for it."""
        closed = super().close(timeout)
        self._serdes.close()
        return closed
