"""Compiles the writer of one version of a message."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from barnabas.wire.codec.constructor import default_expression, is_fresh_each_time
from barnabas.wire.codec.layout import LONGEST_TEXT_BYTES, FieldLayout, Fixed, Sized, layout
from barnabas.wire.codec.source import Source
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.primitives import write_tags, write_uvarint
from barnabas.wire.schema import Message, Struct


def compile_writer(message: type[Message], version: int) -> Callable[[Any, Outgoing], None]:
    """Returns a function that appends a message to outgoing bytes."""
    return _Writer(message, version).compile()


class _Writer:
    """Generates the source.

    Fixed-size values are collected in `_run` as expressions, so that neighbours are packed
    together; code that appends anything else flushes first. `_out` names the buffer appended to.
    A tagged field has its own buffer, because its size precedes it.
    """

    def __init__(self, message: type[Message], version: int) -> None:
        self._message = message
        self._version = version
        self._flexible = message.FLEXIBLE_FROM is not None and version >= message.FLEXIBLE_FROM
        self._run: list[tuple[str, str]] = []
        self._out = "out"
        self._source = Source(
            pack=struct.pack,
            write_uvarint=write_uvarint,
            write_tags=write_tags,
            unsupported=_unsupported,
            not_nullable=_not_nullable,
            OutOfRange=struct.error,
            PLAIN=frozenset({bytes, bytearray, memoryview}),
        )

    def compile(self) -> Callable[[Any, Outgoing], None]:
        source = self._source
        title = f"{self._message.__name__} version {self._version}"
        with source.block("def write(message, out):"):
            with source.block("try:"):
                self._struct(self._message, "message")
                self._flush()
                source.add("return")
            with source.block("except OutOfRange as error:"):
                source.add(f"raise ValueError(f'{title}: {{error}}') from None")
        writer: Callable[[Any, Outgoing], None] = source.compile("write", f"write {title}")
        return writer

    def _struct(self, declared: type[Struct], it: str) -> None:
        tagged = []
        for field in layout(declared):
            label = f"{declared.__name__}.{field.name}"
            if self._version not in field.versions:
                if not field.ignorable:
                    with self._source.block(f"if {self._differs(field, it)}:"):
                        self._source.add(f"raise unsupported({label!r}, {self._version})")
            elif field.tag is not None:
                tagged.append(field)
            else:
                self._field(field, f"{it}.{field.name}", label)
        if self._flexible:
            self._tags(declared, it, tagged)

    def _field(self, field: FieldLayout, value: str, label: str) -> None:
        nullable = field.is_nullable(self._version)
        if isinstance(field.scalar, Fixed) and not field.is_array:
            self._run.append((value, field.scalar.code))
            return
        source = self._source
        it = source.local("v")
        source.add(f"{it} = {value}")
        if field.nullable is not None and not nullable:
            source.add(f"if {it} is None: raise not_nullable({label!r}, {self._version})")
        if field.is_array:
            self._array(field, it, nullable)
        elif isinstance(field.scalar, Sized):
            self._sized(field.scalar, it, nullable)
        elif not isinstance(field.scalar, type):
            raise AssertionError(field)
        elif nullable:
            # In a tagged field 0 means null, elsewhere -1 does; 1 means a struct in both.
            self._flush()
            with source.block(f"if {it} is None:"):
                source.add(f"{self._out}.append({255 if field.tag is None else 0})")
            with source.block("else:"):
                self._run.append(("1", "b"))
                self._struct(field.scalar, it)
                self._flush()
        else:
            self._struct(field.scalar, it)

    def _sized(self, kind: Sized, it: str, nullable: bool) -> None:
        """Appends length-prefixed text, bytes or records."""
        source = self._source
        if kind.is_records:
            self._records(it, nullable)
            return
        if nullable:
            size = source.local("n")
            with source.block(f"if {it} is None:"):
                source.add(f"{it} = b''; {size} = -1")
            with source.block("else:"):
                if kind.is_text:
                    source.add(f"{it} = {it}.encode()")
                source.add(f"{size} = len({it})")
        else:
            if kind.is_text:
                source.add(f"{it} = {it}.encode()")
            size = f"len({it})"
        self._length(kind.length_code, size, LONGEST_TEXT_BYTES if kind.is_text else None)
        source.add(f"{self._out} += {it}")

    def _records(self, it: str, nullable: bool) -> None:
        """Appends record bytes, or adds their region."""
        source = self._source
        size = source.local("n")
        branch = "if"
        if nullable:
            source.add(f"if {it} is None: {size} = -1")
            branch = "elif"
        source.add(f"{branch} type({it}) in PLAIN: {size} = len({it})")
        source.add(f"else: {size} = {it}.size_bytes")
        if self._flexible:
            self._long_uvarint(f"{size} + 1")
        else:
            self._length("i", size)
        with source.block(f"if {size} > 0:"):
            source.add(f"if type({it}) in PLAIN: {self._out} += {it}")
            source.add(f"else: {self._out}.regions.append((len({self._out}), {it}))")

    def _array(self, field: FieldLayout, it: str, nullable: bool) -> None:
        source = self._source
        self._length("i", f"-1 if {it} is None else len({it})" if nullable else f"len({it})")
        with source.block(f"if {it}:"):
            if isinstance(field.scalar, Fixed):
                if field.scalar.code == "16s":
                    source.add(f"{self._out} += b''.join({it})")
                else:
                    source.add(f"{self._out} += pack(f'>{{len({it})}}{field.scalar.code}', *{it})")
                return
            element = source.local("s")
            with source.block(f"for {element} in {it}:"):
                if isinstance(field.scalar, Sized):
                    self._sized(field.scalar, element, False)
                else:
                    self._struct(field.scalar, element)
                    self._flush()

    def _length(self, code: str, size: str, limit: int | None = None) -> None:
        """Appends a length or count, -1 for null, after the collected values."""
        if self._flexible:
            self._uvarint(f"({size}) + 1" if " " in size else f"{size} + 1", limit)
        else:
            self._run.append((size, code))
            self._flush()

    def _uvarint(self, value: str, limit: int | None = None) -> None:
        """Appends a number that is nearly always small enough to be packed with the run."""
        source = self._source
        number = source.local("n")
        source.add(f"{number} = {value}")
        run = list(self._run)
        with source.block(f"if {number} < 128:"):
            self._run.append((number, "B"))
            self._flush()
        with source.block("else:"):
            if limit is not None:
                source.add(
                    f"if {number} > {limit + 1}: raise OutOfRange('text over {limit} bytes')"
                )
            self._run.extend(run)
            self._flush()
            source.add(f"write_uvarint({self._out}, {number})")

    def _long_uvarint(self, value: str) -> None:
        """Appends a number that often takes two or three bytes: the size of record batches."""
        source = self._source
        n = source.local("n")
        source.add(f"{n} = {value}")
        low, middle, high = f"{n} & 127 | 128", f"{n} >> 7 & 127 | 128", f"{n} >> 14"
        run = list(self._run)
        for branch, packed in (
            (f"if {n} < 128:", [n]),
            (f"elif {n} < 16384:", [low, f"{n} >> 7"]),
            (f"elif {n} < 2097152:", [low, middle, high]),
        ):
            with source.block(branch):
                self._run = [*run, *((byte, "B") for byte in packed)]
                self._flush()
        with source.block("else:"):
            self._run = run
            self._flush()
            source.add(f"write_uvarint({self._out}, {n})")

    def _tags(self, declared: type[Struct], it: str, tagged: list[FieldLayout]) -> None:
        source = self._source
        tags = source.local("t")
        source.add(f"{tags} = {it}.unknown_tags")
        for field in tagged:
            run, self._run = self._run, []
            out = self._out
            with source.block(f"if {self._differs(field, it)}:"):
                self._out = source.local("w")
                source.add(f"{self._out} = bytearray()")
                label = f"{declared.__name__}.{field.name}"
                self._field(field, f"{it}.{field.name}", label)
                self._flush()
                source.add(f"{tags} = {{**({tags} or {{}}), {field.tag}: {self._out}}}")
            self._out = out
            self._run = run
        self._uvarint(f"len({tags}) if {tags} else 0")
        source.add(f"if {tags}: write_tags({self._out}, {tags})")

    def _differs(self, field: FieldLayout, it: str) -> str:
        """Returns the expression for whether a field differs from its default."""
        value = f"{it}.{field.name}"
        if field.defaults_to_empty:
            return value if field.nullable is None else f"{value} or {value} is None"
        default = default_expression(self._source, field)
        if field.default is None:
            return f"{value} is not None"
        if field.defaults_to_struct and not is_fresh_each_time(field):
            return f"{value} is not {default} and {value} != {default}"
        return f"{value} != {default}"

    def _flush(self) -> None:
        """Packs the collected values."""
        if not self._run:
            return
        source = self._source
        values = ", ".join(value for value, _ in self._run)
        codes = "".join(code for _, code in self._run)
        if codes == "B":
            source.add(f"{self._out}.append({values})")
        else:
            pack = struct.Struct(">" + codes).pack
            name = source.constant(f"pack_{codes.replace('?', 'z')}", pack)
            source.add(f"{self._out} += {name}({values})")
        self._run.clear()


def _unsupported(label: str, version: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, f"version {version} has no place for {label}, which is set"
    )


def _not_nullable(label: str, version: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, f"version {version} does not allow {label} to be null"
    )
