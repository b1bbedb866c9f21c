"""The exceptions of clients with serializers, and `KafkaError` and `KafkaException`."""

from barnabas.client._message import Message
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.serialization import SerializationError

__all__ = [
    "ConsumeError",
    "KafkaError",
    "KafkaException",
    "KeyDeserializationError",
    "KeySerializationError",
    "ProduceError",
    "ValueDeserializationError",
    "ValueSerializationError",
]


class _ClientError(KafkaException):
    """An error with the exception that caused it and the message, if there are any."""

    def __init__(
        self,
        kafka_error: KafkaError,
        exception: Exception | None = None,
        kafka_message: Message | None = None,
    ) -> None:
        super().__init__(kafka_error)
        self.exception = exception
        self.kafka_message = kafka_message

    @property
    def code(self) -> int:
        return error_in(self).code()

    @property
    def name(self) -> str:
        return error_in(self).name()


class ConsumeError(_ClientError):
    """A message could not be consumed; `kafka_message` has what is known of it."""


class KeyDeserializationError(ConsumeError, SerializationError):
    """The deserializer of a key raised."""

    def __init__(
        self, exception: Exception | None = None, kafka_message: Message | None = None
    ) -> None:
        error = KafkaError(KafkaError._KEY_DESERIALIZATION, str(exception))
        super().__init__(error, exception, kafka_message)


class ValueDeserializationError(ConsumeError, SerializationError):
    """The deserializer of a value raised."""

    def __init__(
        self, exception: Exception | None = None, kafka_message: Message | None = None
    ) -> None:
        error = KafkaError(KafkaError._VALUE_DESERIALIZATION, str(exception))
        super().__init__(error, exception, kafka_message)


class ProduceError(_ClientError):
    """A message could not be produced."""

    def __init__(self, kafka_error: KafkaError, exception: Exception | None = None) -> None:
        super().__init__(kafka_error, exception)


class KeySerializationError(ProduceError, SerializationError):
    """The serializer of a key raised."""

    def __init__(self, exception: Exception | None = None) -> None:
        error = KafkaError(KafkaError._KEY_SERIALIZATION, str(exception))
        super().__init__(error, exception)


class ValueSerializationError(ProduceError, SerializationError):
    """The serializer of a value raised."""

    def __init__(self, exception: Exception | None = None) -> None:
        error = KafkaError(KafkaError._VALUE_SERIALIZATION, str(exception))
        super().__init__(error, exception)
