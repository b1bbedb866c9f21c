"""Text and bytes, without a schema in the payload."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConnectorSetting,
    Importance,
    Validator,
    Width,
)
from barnabas.connect.converters.converter import (
    Conversion,
    Converted,
    ConvertedBytes,
    Converter,
)
from barnabas.connect.converters.java_text import to_text
from barnabas.connect.data.schema import ConnectSchema, Type, java_type_name
from barnabas.connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def _known_encoding(name: str, value: Any) -> str | None:
    try:
        codecs.lookup(value or "")
    except LookupError:
        return "The encoding is not known"
    return None


_ENCODING: Validator = _known_encoding


class StringConverter(Converter):
    """Text in `converter.encoding`. Values that are not text are written as Java's `toString`.

    Bytes that are not in the encoding become U+FFFD, as in Kafka Connect.
    """

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "converter.encoding",
                ConfigType.STRING,
                "UTF-8",
                "The character set of the text.",
                Importance.HIGH,
                _ENCODING,
                width=Width.MEDIUM,
                display_name="Encoding",
            )
        )

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        parsed = self.config_def().parse(settings)
        self._encoding = codecs.lookup(parsed["converter.encoding"]).name
        self._is_utf8 = self._encoding in ("utf-8", "ascii")
        self._schema = ConnectSchema(Type.STRING, is_optional=True)

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        return Conversion([Converted(0, self._schema, self._texts(payloads))])

    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        import pyarrow as pa

        texts = to_text(values)
        if self._encoding == "utf-8":
            return ConvertedBytes(texts.cast(pa.binary()))
        encoded = [
            None if text is None else text.encode(self._encoding, "replace")
            for text in texts.to_pylist()
        ]
        return ConvertedBytes(pa.array(encoded, pa.binary()))

    def _texts(self, payloads: pa.BinaryArray) -> pa.StringArray:
        import pyarrow as pa

        if self._is_utf8:
            try:
                texts = payloads.cast(pa.string())
                if self._encoding == "utf-8" or _is_ascii(texts):
                    return texts
            except pa.ArrowInvalid:
                pass
        decoded = [
            None if payload is None else payload.decode(self._encoding, "replace")
            for payload in payloads.to_pylist()
        ]
        return pa.array(decoded, pa.string())


class ByteArrayConverter(Converter):
    """Bytes as they are."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        self._schema = ConnectSchema(Type.BYTES, is_optional=True)

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        return Conversion([Converted(0, self._schema, payloads)])

    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        import pyarrow as pa

        if schema is not None and (schema.type is not Type.BYTES or schema.is_logical):
            raise DataError(
                f"Invalid schema type for ByteArrayConverter: {schema.name or schema.type.name}"
            )
        is_type, arrow_type = pa.types, values.type
        if not (
            is_type.is_binary(arrow_type)
            or is_type.is_large_binary(arrow_type)
            or is_type.is_fixed_size_binary(arrow_type)
            or is_type.is_null(arrow_type)
        ):
            raise DataError(
                f"ByteArrayConverter is not compatible with objects of type "
                f"{java_type_name(arrow_type)}"
            )
        return ConvertedBytes(values.cast(pa.binary()))


def _is_ascii(texts: pa.StringArray) -> bool:
    import pyarrow.compute as pc

    return pc.all(pc.string_is_ascii(texts)).as_py() is not False
