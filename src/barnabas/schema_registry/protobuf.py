"""The Protobuf serializer and deserializer for messages of generated classes."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from barnabas.schema_registry.client.models import Schema, SchemaReference
from barnabas.schema_registry.serdes.aio import AsyncDeserializer, AsyncSerializer
from barnabas.schema_registry.serdes.builders import (
    AsyncSerdeBuilder,
    RegistryDeserializerBuilder,
    RegistrySerializerBuilder,
    SerdeBuilder,
)
from barnabas.schema_registry.serdes.deserializer import (
    DeserializerSchemas,
    RegistryDeserializer,
    describe_payload,
)
from barnabas.schema_registry.serdes.framing import Frame
from barnabas.schema_registry.serdes.serde import SerdeConf
from barnabas.schema_registry.serdes.serializer import RegistrySerializer, SubjectEncoding
from barnabas.schema_registry.serdes.subjects import reference_subject_name_strategy
from barnabas.schemas import extra_required_by
from barnabas.schemas.framing import message_indexes
from barnabas.serialization import SerializationContext, SerializationError

with extra_required_by(__name__):
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError, Message

_BUNDLED_FILES = ("confluent/", "google/protobuf/", "google/type/")
"""Files that every registry has."""


class ProtobufSerializer(RegistrySerializer):
    """Serializes a message, framed. Registers the files that its file imports as references."""

    schema_type = "PROTOBUF"
    fmt = "serialized"

    def __init__(
        self,
        msg_type: type[Message],
        schema_registry_client: Any,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self._kind = msg_type
        self._indexes = message_indexes(msg_type.DESCRIPTOR)
        super().__init__(schema_registry_client, conf)

    def _configure(self, settings: SerdeConf) -> None:
        _reject_deprecated_format(settings)
        self._skip_known_types = settings.flag("skip.known.types", True)
        self._reference_subject = settings.function(
            "reference.subject.name.strategy", reference_subject_name_strategy
        )

    def _record_name(self, obj: Any) -> str | None:
        if not isinstance(obj, self._kind):
            raise ValueError(
                f"this serializes {self._kind.DESCRIPTOR.full_name}, not {type(obj).__name__}"
            )
        name: str = obj.DESCRIPTOR.full_name
        return name

    def _own_schema(self, ctx: SerializationContext | None) -> Any:
        return self._file_schema(ctx, self._kind.DESCRIPTOR.file)

    def _file_schema(self, ctx: SerializationContext | None, file: Any) -> Schema:
        references = [
            self._reference(ctx, dependency)
            for dependency in file.dependencies
            if not (self._skip_known_types and dependency.name.startswith(_BUNDLED_FILES))
        ]
        return Schema(base64.b64encode(file.serialized_pb).decode(), "PROTOBUF", references)

    def _reference(self, ctx: SerializationContext | None, file: Any) -> SchemaReference:
        schema = self._file_schema(ctx, file)
        subject = self._reference_subject(ctx, file)
        if self._auto_register:
            self._registry.register_schema(subject, schema, normalize_schemas=self._normalize)
        registered = self._registry.lookup_schema(
            subject, schema, normalize_schemas=self._normalize
        )
        return SchemaReference(file.name, subject, registered.version)

    def _message_indexes(self) -> tuple[int, ...] | None:
        return self._indexes

    def _parse(self, schema: Any) -> Any:
        return None  # a message has its own

    def _encode(
        self, obj: Any, encoding: SubjectEncoding, ctx: SerializationContext | None
    ) -> bytes:
        payload: bytes = obj.SerializeToString()
        return payload


class ProtobufDeserializer(RegistryDeserializer):
    """Deserializes a framed message. With a client, the writer's schema must be registered."""

    schema_type = "PROTOBUF"
    fmt = "serialized"

    def __init__(
        self,
        message_type: type[Message],
        conf: Mapping[str, Any] | None = None,
        schema_registry_client: Any = None,
    ) -> None:
        self._kind = message_type
        super().__init__(schema_registry_client, None, conf)

    def _configure(self, settings: SerdeConf) -> None:
        _reject_deprecated_format(settings)

    def _parse(self, schema: Any) -> Any:
        file = FileDescriptorProto()
        try:
            file.ParseFromString(base64.b64decode(schema.schema_str, validate=True))
        except (binascii.Error, DecodeError) as problem:
            raise SerializationError(
                f"the registry does not give Protobuf schemas in the serialized format: {problem}"
            ) from problem
        return _WrittenFile(file)

    def _name(self, parsed: Any, frame: Frame) -> str | None:
        name: str = parsed.name_of(frame)
        return name

    def _decode(
        self, frame: Frame, schemas: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        if schemas.writer_schema is not None:
            schemas.writer_schema.name_of(frame)
        message = self._kind()
        try:
            message.ParseFromString(frame.payload)
        except DecodeError as problem:
            raise SerializationError(
                f"{describe_payload(ctx)} is not a {self._kind.DESCRIPTOR.full_name}: {problem}"
            ) from problem
        return message


class _MessageBuilder(SerdeBuilder):
    def set_message_type(self, msg_type: Any) -> Self:
        return self._set("message_type", msg_type)

    def _construct(self, client: Any) -> Any:
        if self._settings.get("message_type") is None:
            raise ValueError("message_type is missing: the class of the messages")
        return super()._construct(client)


class ProtobufSerializerBuilder(_MessageBuilder, RegistrySerializerBuilder):
    kind: ClassVar[type] = ProtobufSerializer
    _names = ("message_type", "serializer_config")
    _parameters: ClassVar[Mapping[str, str]] = {
        "message_type": "msg_type",
        "serializer_config": "conf",
    }


class ProtobufDeserializerBuilder(_MessageBuilder, RegistryDeserializerBuilder):
    kind: ClassVar[type] = ProtobufDeserializer
    _names = ("message_type", "deserializer_config")


class AsyncProtobufSerializer(AsyncSerializer):
    kind = ProtobufSerializer


class AsyncProtobufDeserializer(AsyncDeserializer):
    kind = ProtobufDeserializer


class AsyncProtobufSerializerBuilder(AsyncSerdeBuilder, ProtobufSerializerBuilder):
    kind = AsyncProtobufSerializer


class AsyncProtobufDeserializerBuilder(AsyncSerdeBuilder, ProtobufDeserializerBuilder):
    kind = AsyncProtobufDeserializer


class _WrittenFile:
    """The file of a writer's schema, with a cache of its message names."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._names: dict[tuple[int, ...] | None, str] = {}

    def name_of(self, frame: Frame) -> str:
        """Returns the name of the message at the indexes. Raises SerializationError if none is."""
        name = self._names.get(frame.message_indexes)
        if name is None:
            name = self._names[frame.message_indexes] = self._find_name(frame)
        return name

    def _find_name(self, frame: Frame) -> str:
        names = [self._file.package] if self._file.package else []
        messages = self._file.message_type
        for index in frame.message_indexes or (0,):
            if not 0 <= index < len(messages):
                raise SerializationError(
                    f"schema {frame.schema} has no message {list(frame.message_indexes or (0,))}"
                )
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(names)


def _reject_deprecated_format(settings: SerdeConf) -> None:
    if settings.flag("use.deprecated.format", False):
        raise ValueError(
            "use.deprecated.format is not supported: message indexes are written as in Java"
        )
