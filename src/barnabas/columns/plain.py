"""Payloads without a schema: bytes as they are, and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import ColumnDecoder, ColumnEncoder, DecodedColumn
from barnabas.schemas import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(name: str) -> pa.DataType:
    import pyarrow as pa

    return pa.string() if name == "string" else pa.binary()


def decoder(name: str) -> ColumnDecoder:
    return _TextDecoder() if name == "string" else _BinaryDecoder()


def encoder(name: str, arrow_type: pa.DataType) -> ColumnEncoder:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_nested(arrow_type) or (
        name == "binary" and not (kinds.is_binary(arrow_type) or kinds.is_string(arrow_type))
    ):
        raise SchemaError(
            f"Format {name!r} cannot write values of type {arrow_type}: cast them, or name a "
            f"format with a schema."
        )
    return _CastEncoder()


class _BinaryDecoder:
    @property
    def arrow_type(self) -> pa.DataType:
        return arrow_type("binary")

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        return DecodedColumn(payloads, None)


class _TextDecoder:
    @property
    def arrow_type(self) -> pa.DataType:
        return arrow_type("string")

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        import pyarrow as pa

        try:
            return DecodedColumn(payloads.cast(pa.string()), None)
        except pa.ArrowInvalid:
            return _decode_one_by_one(payloads)


def _decode_one_by_one(payloads: pa.BinaryArray) -> DecodedColumn:
    import pyarrow as pa

    texts: list[str | None] = []
    reasons: list[str | None] = []
    for payload in payloads.to_pylist():
        reason = text = None
        if payload is not None:
            try:
                text = payload.decode()
            except UnicodeDecodeError as error:
                reason = f"The payload is not UTF-8: {error.reason} at byte {error.start}."
        texts.append(text)
        reasons.append(reason)
    return DecodedColumn(pa.array(texts, pa.string()), pa.array(reasons, pa.string()))


class _CastEncoder:
    def encode(self, values: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa

        if values.type == pa.binary():
            return values
        return values.cast(pa.string()).cast(pa.binary())
