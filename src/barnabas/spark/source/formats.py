"""How keys and values are decoded: what the options say of formats, and of what has none."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, cast

from barnabas.registry.columns.format import FORMAT_NAMES, ColumnFormat, FormatName
from barnabas.spark.naming import REGISTRY, OptionError
from barnabas.spark.source.told import Told

if TYPE_CHECKING:
    from barnabas.registry.columns import Decoder

MOST_DECODERS = 32
"""That a process keeps for the tasks that follow."""


class Mode(Enum):
    """What becomes of a record that cannot be decoded."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DROPMALFORMED = "dropmalformed"


@dataclass(slots=True, frozen=True)
class Formats:
    """Of the columns that are not left as binary."""

    key: ColumnFormat | None
    value: ColumnFormat | None
    mode: Mode
    corrupt_column: str

    @property
    def has_corrupt_column(self) -> bool:
        return self.mode is Mode.PERMISSIVE and bool(self.key or self.value)


def formats_of(told: Told) -> Formats:
    """With the schemas that the registry has now."""
    mode = Mode(told.word("mode", tuple(mode.value for mode in Mode)))
    corrupt_column = told.text("columnNameOfCorruptRecord") or "_corrupt_record"
    return Formats(_format(told, "key"), _format(told, "value"), mode, corrupt_column)


def _format(told: Told, column: str) -> ColumnFormat | None:
    name = (told.text(f"{column}Format") or "binary").lower()
    if name not in FORMAT_NAMES:
        raise OptionError(f"{column}Format must be one of {', '.join(FORMAT_NAMES)}, not {name!r}.")
    if name == "binary":
        return None
    registry = {
        option.removeprefix(REGISTRY): value
        for option, value in told.given.items()
        if option.startswith(REGISTRY)
    }
    schema = told.text(f"{column}Schema")
    has_subject = name != "string" and schema is None
    return ColumnFormat(
        cast("FormatName", name),
        _subject(told, column) if has_subject else told.text(f"{column}Subject"),
        registry,
        schema_text=schema,
        message=told.text(f"{column}Message"),
        framing="registry" if registry else "none",
    ).resolved()


def _subject(told: Told, column: str) -> str:
    """That of the one topic which is read, unless it is told."""
    subject = told.text(f"{column}Subject")
    if subject is not None:
        return subject
    if told.text(f"{REGISTRY}url") is None:
        raise OptionError(
            f"{column}Format needs {REGISTRY}url, whose schema gives the columns, or a"
            f" {column}Schema for payloads that bear no schema's id."
        )
    topic = told.text("subscribe") or ""
    if not topic or "," in topic:
        raise OptionError(f"{column}Format needs a {column}Subject where several topics are read.")
    return f"{topic}-{column}"


_decoders: dict[bytes, Decoder] = {}


def decoder(format_: ColumnFormat) -> Decoder:
    """The process's one: making it takes longer than a small batch."""
    key = pickle.dumps(format_)
    known = _decoders.get(key)
    if known is None:
        if len(_decoders) >= MOST_DECODERS:
            _decoders.clear()
        known = _decoders[key] = format_.decoder()
    return known
