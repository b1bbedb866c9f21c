"""What the registry asks of a schema language, whichever it is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Protocol


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class SchemaError(ValueError):
    """The text is no schema of its type, or not one for what is asked; says where and why."""


@dataclass(slots=True, frozen=True)
class Incompatibility:
    """One reason why a reader cannot read what was written.

    The description calls the two `{reader}` and `{writer}`: only who asks knows which is new.
    """

    error_type: str
    description: str
    additional: str = ""

    def describe(self, reader: str, writer: str) -> str:
        """The description with what the two are called there ("new" and "old", say)."""
        return self.description.replace("{reader}", reader).replace("{writer}", writer)


class ParsedSchema(Protocol):
    @property
    def text(self) -> str:
        """As it is stored and given out."""
        ...

    @property
    def normalized(self) -> str:
        """The same for all texts that mean the same."""
        ...

    @property
    def resolved(self) -> str:
        """The same with what it refers to in it, if the language has that; else as it is stored."""
        ...

    @property
    def name(self) -> str | None:
        """Of the record, message or document at its top."""
        ...

    def require_valid(self) -> None:
        """SchemaError if it can be read but has faults that a new schema must not have."""
        ...

    def find_incompatibilities(self, written: "ParsedSchema") -> list[Incompatibility]:
        """Why data of `written` cannot be read with this schema; nothing where it can.

        The two are of one type: whoever asks has seen to that.
        """
        ...


_HOMES = {
    SchemaType.AVRO: "barnabas.schemas.avro",
    SchemaType.JSON: "barnabas.schemas.json_schema",
    SchemaType.PROTOBUF: "barnabas.schemas.protobuf",
}


def parse(kind: SchemaType, text: str, references: Mapping[str, str]) -> ParsedSchema:
    """Read a schema; `references` has the texts it refers to, and theirs, by the names they use.

    SchemaError where it cannot be.
    """
    with extra_required_by(f"A schema of type {kind}"):
        home = import_module(_HOMES[kind])
    parsed: ParsedSchema = home.parse(text, references)
    return parsed


@contextmanager
def extra_required_by(feature: str) -> Iterator[None]:
    """Wraps imports of optional libraries. If one is missing, the error names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("barnabas"):
            raise
        raise ImportError(
            f"{feature} needs {missing.name}: pip install 'barnabas[registry]'"
        ) from None
