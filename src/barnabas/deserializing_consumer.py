"""A consumer that deserializes keys and values on their way out."""

from collections.abc import Mapping
from typing import Any, Generic, NoReturn, TypeVar

from barnabas.client._message import Message
from barnabas.client.consumer import Consumer
from barnabas.client.serdes import Serdes, apply_serde
from barnabas.error import ConsumeError, KeyDeserializationError, ValueDeserializationError
from barnabas.serialization import MessageField, SerializationContext

K = TypeVar("K")
V = TypeVar("V")


class DeserializingConsumer(Consumer, Generic[K, V]):
    """As Consumer, with `key.deserializer` and `value.deserializer` in its settings."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._serdes, rest = Serdes.from_settings(conf, "deserializer")
        with self._serdes.closed_on_error():
            super().__init__(rest)
            self._serdes.set_cluster_id_resolver(self.cluster_id)

    def poll(self, timeout: float = -1) -> Message | None:
        """A message whose key() and value() are objects; ConsumeError instead of error()."""
        message = super().poll(timeout)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        return self._deserialized(message)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> NoReturn:
        """Not for this consumer: one bad message would take the others with it."""
        raise NotImplementedError("use poll(): it tells which message cannot be deserialized")

    def close(self) -> None:
        """Close the consumer, then the deserializers that were built for it."""
        super().close()
        self._serdes.close()

    def _deserialized(self, message: Message) -> Message:
        context = SerializationContext(message.topic() or "", MessageField.KEY, message.headers())
        key = apply_serde(
            self._serdes.key,
            message.key(),
            context,
            lambda problem: KeyDeserializationError(problem, message),
        )
        context.field = MessageField.VALUE
        value = apply_serde(
            self._serdes.value,
            message.value(),
            context,
            lambda problem: ValueDeserializationError(problem, message),
        )
        # Both or neither: whoever catches the exception has the bytes as they came.
        message.set_key(key)
        message.set_value(value)
        return message
