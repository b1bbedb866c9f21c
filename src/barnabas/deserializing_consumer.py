"""A consumer that deserializes keys and values."""

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
    """A Consumer with `key.deserializer` and `value.deserializer` in its settings."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._serdes, rest = Serdes.from_settings(conf, "deserializer")
        with self._serdes.closed_on_error():
            super().__init__(rest)
            self._serdes.set_cluster_id_resolver(self.cluster_id)

    def poll(self, timeout: float = -1) -> Message | None:
        """Returns a message with key() and value() deserialized. Raises ConsumeError on error."""
        message = super().poll(timeout)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        return self._deserialize(message)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> NoReturn:
        """Not supported: one bad message would make the others of the batch unavailable."""
        raise NotImplementedError(
            "use poll(): it raises for the message that cannot be deserialized"
        )

    def close(self) -> None:
        """Closes the consumer, then the deserializers that were built for it."""
        super().close()
        self._serdes.close()

    def _deserialize(self, message: Message) -> Message:
        context = SerializationContext(message.topic() or "", MessageField.KEY, message.headers())
        key = apply_serde(
            self._serdes.key,
            message.key(),
            context,
            lambda error: KeyDeserializationError(error, message),
        )
        context.field = MessageField.VALUE
        value = apply_serde(
            self._serdes.value,
            message.value(),
            context,
            lambda error: ValueDeserializationError(error, message),
        )
        # Both or neither: the message of an exception still has its bytes.
        message.set_key(key)
        message.set_value(value)
        return message
