"""Compiles the reader of one version of a message.

Every claimed length is checked against the remaining bytes before anything is allocated. Any
exception that malformed bytes cause in Python becomes a ProtocolViolation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from barnabas.wire.codec.constructor import default_expression
from barnabas.wire.codec.layout import LONGEST_TEXT_BYTES, FieldLayout, Fixed, Sized, layout
from barnabas.wire.codec.source import Source
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.primitives import continue_uvarint, read_tags, read_uvarint
from barnabas.wire.schema import Buffer, Message, Struct


def compile_reader(
    message: type[Message], version: int
) -> Callable[[Buffer, int], tuple[Any, int]]:
    """Returns a function from a buffer and a position to the message and the position after it."""
    return _Reader(message, version).compile()


class _Reader:
    """Generates the source. In it `b` is the buffer, `p` the position, `end` the buffer's end.

    Fixed-size values are collected in `_run`, so that neighbours are unpacked together; code
    that needs one of them, or moves `p`, flushes first.
    """

    def __init__(self, message: type[Message], version: int) -> None:
        self._message = message
        self._version = version
        self._flexible = message.FLEXIBLE_FROM is not None and version >= message.FLEXIBLE_FROM
        self._run: list[tuple[str, str]] = []
        self._source = Source(
            new=object.__new__,
            unpack_from=struct.unpack_from,
            continue_uvarint=continue_uvarint,
            read_uvarint=read_uvarint,
            read_tags=read_tags,
            overrun=_overrun,
            too_long=_too_long,
            null=_null,
            misfit=_size_mismatch,
            malformed=_malformed,
            MALFORMED=(struct.error, IndexError, UnicodeDecodeError),
        )

    def compile(self) -> Callable[[Buffer, int], tuple[Any, int]]:
        source = self._source
        title = f"{self._message.__name__} version {self._version}"
        with source.block("def read(b, p):"):
            source.add("if type(b) is not memoryview: b = memoryview(b)")
            source.add("end = len(b)")
            with source.block("try:"):
                root = self._struct(self._message, "{}")
                self._flush()
                source.add(f"return {root}, p")
            with source.block("except MALFORMED as error:"):
                source.add(f"raise malformed({title!r}, p, error) from None")
        reader: Callable[[Buffer, int], tuple[Any, int]] = source.compile("read", f"read {title}")
        return reader

    def _struct(self, declared: type[Struct], store: str) -> str:
        """Reads the fields of a new instance, which `store` assigns."""
        source = self._source
        it = source.local("s")
        source.add(f"{it} = new({source.constant(declared.__name__, declared)})")
        if store != "{}":
            source.add(store.format(it))
        tagged = []
        for field in layout(declared):
            label = f"{declared.__name__}.{field.name}"
            if self._version not in field.versions:
                source.add(f"{it}.{field.name} = {default_expression(source, field)}")
            elif field.tag is not None:
                source.add(f"{it}.{field.name} = {default_expression(source, field)}")
                tagged.append(field)
            else:
                self._field(field, f"{it}.{field.name}", label)
        source.add(f"{it}.unknown_tags = None")
        if self._flexible:
            self._tags(declared, it, tagged)
        return it

    def _field(self, field: FieldLayout, target: str, label: str) -> None:
        nullable = field.is_nullable(self._version)
        if field.is_array:
            self._array(field, target, nullable, label)
        elif isinstance(field.scalar, Fixed):
            self._run.append((target, field.scalar.code))
        elif isinstance(field.scalar, Sized):
            self._sized(field.scalar, f"{target} = {{}}", nullable, label)
        elif nullable:
            # In a tagged field 0 means null, elsewhere -1 does; 1 means a struct in both.
            code, is_null = ("b", "< 0") if field.tag is None else ("B", "== 0")
            marker = self._byte(code, "n")
            with self._source.block(f"if {marker} {is_null}:"):
                self._source.add(f"{target} = None")
            with self._source.block("else:"):
                self._struct(field.scalar, f"{target} = {{}}")
                self._flush()
        else:
            self._struct(field.scalar, f"{target} = {{}}")

    def _sized(self, kind: Sized, store: str, nullable: bool, label: str) -> None:
        """Reads length-prefixed text, bytes or records."""
        source = self._source
        store_null = store.format("None") if nullable else None
        limit = LONGEST_TEXT_BYTES if kind.is_text else None
        size = self._length(kind.length_code, store_null, label, limit)
        with source.block("else:"):
            stop = source.local("e")
            source.add(f"{stop} = p + {size}")
            source.add(f"if {stop} > end: raise overrun({label!r}, {size}, end - p)")
            value = f"b[p:{stop}]"
            if kind.is_text:
                value += ".tobytes().decode()"
            elif not kind.is_records:
                value += ".tobytes()"
            source.add(store.format(value))
            source.add(f"p = {stop}")

    def _array(self, field: FieldLayout, target: str, nullable: bool, label: str) -> None:
        source = self._source
        count = self._length("i", f"{target} = None" if nullable else None, label)
        smallest = max(1, field.smallest_element(self._version, self._flexible))
        with source.block("else:"):
            source.add(
                f"if {count} * {smallest} > end - p: raise overrun({label!r}, {count}, end - p)"
            )
            if isinstance(field.scalar, Fixed):
                self._fixed_elements(field.scalar, target, count)
                return
            elements = source.local("a")
            source.add(f"{elements} = {target} = []")
            with source.block(f"for _ in range({count}):"):
                if isinstance(field.scalar, Sized):
                    self._sized(field.scalar, f"{elements}.append({{}})", False, label)
                else:
                    self._struct(field.scalar, f"{elements}.append({{}})")
                    self._flush()

    def _fixed_elements(self, kind: Fixed, target: str, count: str) -> None:
        source = self._source
        stop = source.local("e")
        source.add(f"{stop} = p + {count} * {kind.size_bytes}")
        if kind.code == "16s":
            source.add(f"{target} = [b[i:i + 16].tobytes() for i in range(p, {stop}, 16)]")
        else:
            source.add(f"{target} = list(unpack_from(f'>{{{count}}}{kind.code}', b, p))")
        source.add(f"p = {stop}")

    def _length(
        self, code: str, store_null: str | None, label: str, limit: int | None = None
    ) -> str:
        """Reads a length or count and handles null; the caller adds the `else:`."""
        source = self._source
        if self._flexible:
            size = self._byte("B", "n")
            with source.block(f"if {size} > 127:"):
                source.add(f"{size}, p = continue_uvarint(b, p, {size})")
                if limit is not None:
                    source.add(f"if {size} > {limit + 1}: raise too_long({label!r}, {size} - 1)")
            source.add(f"{size} -= 1")
        else:
            size = source.local("n")
            self._run.append((size, code))
            self._flush()
        with source.block(f"if {size} < 0:"):
            source.add(store_null or f"raise null({label!r})")
        return size

    def _byte(self, code: str, hint: str) -> str:
        value = self._source.local(hint)
        self._run.append((value, code))
        self._flush()
        return value

    def _tags(self, declared: type[Struct], it: str, tagged: list[FieldLayout]) -> None:
        source = self._source
        count = self._byte("B", "t")
        with source.block(f"if {count}:"):
            if not tagged:
                source.add(f"{it}.unknown_tags, p = read_tags(b, p, end, {count})")
                return
            tag, size, stop = source.local("tag"), source.local("n"), source.local("e")
            source.add(f"if {count} > 127: {count}, p = continue_uvarint(b, p, {count})")
            with source.block(f"for _ in range({count}):"):
                source.add(f"{tag}, p = read_uvarint(b, p)")
                source.add(f"{size}, p = read_uvarint(b, p)")
                source.add(f"{stop} = p + {size}")
                label = f"{declared.__name__} tagged field"
                source.add(f"if {stop} > end: raise overrun({label!r}, {size}, end - p)")
                branch = "if"
                for field in tagged:
                    with source.block(f"{branch} {tag} == {field.tag}:"):
                        label = f"{declared.__name__}.{field.name}"
                        self._field(field, f"{it}.{field.name}", label)
                        self._flush()
                        source.add(f"if p != {stop}: raise misfit({label!r}, {size})")
                    branch = "elif"
                with source.block("else:"):
                    source.add(f"if {it}.unknown_tags is None: {it}.unknown_tags = {{}}")
                    source.add(f"{it}.unknown_tags[{tag}] = b[p:{stop}].tobytes()")
                    source.add(f"p = {stop}")

    def _flush(self) -> None:
        """Unpacks the collected values."""
        if not self._run:
            return
        source = self._source
        targets = ", ".join(target for target, _ in self._run)
        codes = "".join(code for _, code in self._run)
        if codes == "B":
            source.add(f"{targets} = b[p]; p += 1")
        else:
            form = struct.Struct(">" + codes)
            unpack = source.constant(f"unpack_{codes.replace('?', 'z')}", form.unpack_from)
            source.add(f"{targets}, = {unpack}(b, p); p += {form.size}")
        self._run.clear()


def _overrun(label: str, claimed: int, left_bytes: int) -> ProtocolViolation:
    return ProtocolViolation(f"{label} claims a length of {claimed} with {left_bytes} bytes left")


def _too_long(label: str, size_bytes: int) -> ProtocolViolation:
    return ProtocolViolation(f"{label} is {size_bytes} bytes of text, over {LONGEST_TEXT_BYTES}")


def _null(label: str) -> ProtocolViolation:
    return ProtocolViolation(f"{label} is null, which this version does not allow")


def _size_mismatch(label: str, size_bytes: int) -> ProtocolViolation:
    return ProtocolViolation(f"{label} does not fill the {size_bytes} bytes it claims")


def _malformed(title: str, position: int, error: Exception) -> ProtocolViolation:
    reason = "invalid UTF-8" if isinstance(error, UnicodeDecodeError) else "the bytes end too soon"
    return ProtocolViolation(f"{title}: {reason} after position {position}")
