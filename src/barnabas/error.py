"""What clients with serializers raise, beside `KafkaError` and `KafkaException` themselves."""

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
    """An error with the exception that led to it and the message it is about, where there are."""

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
    """A message could not be consumed; `kafka_message` has what there is of it."""


class KeyDeserializationError(ConsumeError, SerializationError):
    """The deserializer raised at a key."""

    def __init__(
        self, exception: Exception | None = None, kafka_message: Message | None = None
    ) -> None:
        error = KafkaError(KafkaError._KEY_DESERIALIZATION, str(exception))
        super().__init__(error, exception, kafka_message)


class ValueDeserializationError(ConsumeError, SerializationError):
    """The deserializer raised at a value."""

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
    """The serializer raised at a key."""

    def __init__(self, exception: Exception | None = None) -> None:
        error = KafkaError(KafkaError._KEY_SERIALIZATION, str(exception))
        super().__init__(error, exception)


class ValueSerializationError(ProduceError, SerializationError):
    """The serializer raised at a value."""

    def __init__(self, exception: Exception | None = None) -> None:
        error = KafkaError(KafkaError._VALUE_SERIALIZATION, str(exception))
        super().__init__(error, exception)
