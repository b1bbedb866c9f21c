"""Writes batches of records to a local file in one of the formats."""

from __future__ import annotations

import bz2
import gzip
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.object_store import settings as names
from barnabas.connect.converters.converter import ConvertedBytes, RowError
from barnabas.connect.data.schema import ConnectSchema, schema_from_arrow
from barnabas.connect.errors import DataError

_SYNC_BYTES = 16


class FormatWriter(ABC):
    """Writes one file, whose records share a schema."""

    @abstractmethod
    def write(self, values: pa.Array) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class FileFormat(ABC):
    """What the files of a connector have in common."""

    extension: str

    @abstractmethod
    def open(self, file: Path, schema: ConnectSchema | None, values: pa.Array) -> FormatWriter:
        """Raises DataError if the format has no such type. `values` have the type of all values."""

    def errors(self, schema: ConnectSchema | None, values: pa.Array) -> list[RowError]:
        """Returns the rows that cannot be written. None of them is null."""
        return []


def file_format(settings: Mapping[str, Any]) -> FileFormat:
    match names.short_name(settings[names.FORMAT_CLASS], "format"):
        case "parquet":
            return ParquetFormat(settings["parquet.codec"])
        case "avro":
            return AvroFormat(settings["avro.codec"])
        case "json":
            return JsonFormat(_opener(settings), settings["json.decimal.format"])
        case _:
            return ByteArrayFormat(
                _opener(settings),
                settings["format.bytearray.extension"],
                settings["format.bytearray.separator"].encode(),
            )


# Parquet


class ParquetFormat(FileFormat):
    """The fields of the values are the columns."""

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self.extension = ".parquet" if codec == "none" else f".{_PARQUET_NAMES.get(codec, codec)}"
        if codec != "none":
            self.extension += ".parquet"

    def open(self, file: Path, schema: ConnectSchema | None, values: pa.Array) -> FormatWriter:
        _require_struct(values, "Parquet")
        return _ParquetWriter(file, values.type, self._codec)


_PARQUET_NAMES = {"gzip": "gz"}


class _ParquetWriter(FormatWriter):
    def __init__(self, file: Path, struct: pa.StructType, codec: str) -> None:
        import pyarrow.parquet as pq

        self._schema = pa.schema(list(struct))
        self._writer = pq.ParquetWriter(file, self._schema, compression=codec)

    def write(self, values: pa.Array) -> None:
        self._writer.write_batch(pa.RecordBatch.from_arrays(values.flatten(), schema=self._schema))

    def close(self) -> None:
        self._writer.close()


# Avro


class AvroFormat(FileFormat):
    """Object container files."""

    extension = ".avro"

    def __init__(self, codec: str) -> None:
        self._codec = codec

    def open(self, file: Path, schema: ConnectSchema | None, values: pa.Array) -> FormatWriter:
        declared = schema_from_arrow(values.type, is_optional=False) if schema is None else schema
        return _AvroWriter(file, declared, self._codec)


class _AvroWriter(FormatWriter):
    def __init__(self, file: Path, schema: ConnectSchema, codec: str) -> None:
        from barnabas.columns.avro.payload_encoder import AvroEncoder
        from barnabas.columns.avro.schemas import parse_reader_schema
        from barnabas.columns.avro.types import arrow_field
        from barnabas.connect.converters.avro_mapping import AvroMapping, codec_schema

        mapping = AvroMapping(is_enhanced=True, has_metadata=True, scrubs_names=True)
        text = mapping.avro_text(schema)
        written = codec_schema(parse_reader_schema(text, {}))
        self._arrow_type = arrow_field("value", written).type
        self._encoder = AvroEncoder(written, self._arrow_type, None)
        self._compress = _AVRO_CODECS[codec]
        self._sync = os.urandom(_SYNC_BYTES)
        self._file = file.open("wb")
        self._file.write(_avro_header(text, codec, self._sync))

    def write(self, values: pa.Array) -> None:
        from barnabas.connect.data.conform import conform

        payloads = self._encoder.encode(conform(values, self._arrow_type))
        block = self._compress(_content(payloads))
        self._file.write(_avro_long(len(payloads)) + _avro_long(len(block)))
        self._file.write(block)
        self._file.write(self._sync)

    def close(self) -> None:
        self._file.close()


def _avro_header(schema_text: str, codec: str, sync: bytes) -> bytes:
    entries = {b"avro.schema": schema_text.encode(), b"avro.codec": codec.encode()}
    body = b"".join(
        _avro_long(len(key)) + key + _avro_long(len(value)) + value
        for key, value in entries.items()
    )
    return b"Obj\x01" + _avro_long(len(entries)) + body + b"\x00" + sync


def _avro_long(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _deflate(block: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(block) + stream.flush()


def _snappy(block: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(block)) + zlib.crc32(block).to_bytes(4, "big")


_AVRO_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": _deflate,
    "snappy": _snappy,
    "bzip2": bz2.compress,
}


# JSON and bytes


Opener = tuple[Callable[[Path], BinaryIO], str]
"""Opens a file for writing; and what its name ends with."""


def _opener(settings: Mapping[str, Any]) -> Opener:
    if settings["s3.compression.type"] == "none":
        return lambda file: file.open("wb"), ""
    level = settings["s3.compression.level"]
    # Without a time, the same records give the same file.
    return (
        lambda file: gzip.GzipFile(file, "wb", 6 if level < 0 else level, mtime=0),  # type: ignore[return-value]
        ".gz",
    )


class JsonFormat(FileFormat):
    """A line for each record, without its schema."""

    def __init__(self, opener: Opener, decimal_format: str) -> None:
        from barnabas.connect.converters.json import JsonConverter

        self._open, compressed = opener
        self.extension = f".json{compressed}"
        self._converter = JsonConverter()
        self._converter.configure(
            {"schemas.enable": "false", "decimal.format": decimal_format}, is_key=False
        )

    def open(self, file: Path, schema: ConnectSchema | None, values: pa.Array) -> FormatWriter:
        return _LinesWriter(self._open(file), lambda each: self._encode(schema, each), b"\n")

    def errors(self, schema: ConnectSchema | None, values: pa.Array) -> list[RowError]:
        return list(self._converted(schema, values).errors)

    def _encode(self, schema: ConnectSchema | None, values: pa.Array) -> pa.Array:
        return self._converted(schema, values).payloads

    def _converted(self, schema: ConnectSchema | None, values: pa.Array) -> ConvertedBytes:
        return self._converter.from_connect("", schema, values)


class ByteArrayFormat(FileFormat):
    """The bytes of the values, each with a separator."""

    def __init__(self, opener: Opener, extension: str, separator: bytes) -> None:
        self._open, compressed = opener
        self.extension = f"{extension}{compressed}"
        self._separator = separator

    def open(self, file: Path, schema: ConnectSchema | None, values: pa.Array) -> FormatWriter:
        if not (pa.types.is_binary(values.type) or pa.types.is_string(values.type)):
            raise DataError(
                f"Values of type {values.type} cannot be written as bytes: set value.converter to "
                f"the ByteArrayConverter."
            )
        return _LinesWriter(self._open(file), lambda each: each.cast(pa.binary()), self._separator)


class _LinesWriter(FormatWriter):
    def __init__(
        self, file: BinaryIO, encode: Callable[[pa.Array], pa.Array], separator: bytes
    ) -> None:
        self._file = file
        self._encode = encode
        self._separator = separator

    def write(self, values: pa.Array) -> None:
        payloads = self._encode(values)
        ended = pc.binary_join_element_wise(
            payloads, pa.scalar(self._separator, pa.binary()), pa.scalar(b"", pa.binary())
        )
        self._file.write(_content(ended))

    def close(self) -> None:
        self._file.close()


def _content(payloads: pa.Array) -> bytes:
    """Returns all payloads, one after the other; none of them is null."""
    if not len(payloads):
        return b""
    _, offsets, content = payloads.buffers()
    if content is None:
        return b""
    bounds = memoryview(offsets).cast("i")
    return bytes(
        memoryview(content)[bounds[payloads.offset] : bounds[payloads.offset + len(payloads)]]
    )


def _require_struct(values: pa.Array, name: str) -> None:
    if not pa.types.is_struct(values.type) or not values.type.num_fields:
        raise DataError(
            f"Values of type {values.type} cannot be written as {name}, which needs fields: use a "
            f"converter with a schema, the transform HoistField, or another format."
        )
