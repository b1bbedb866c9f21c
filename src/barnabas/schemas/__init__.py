"""Avro, JSON Schema and Protobuf schemas behind one interface: parse, validate, compare, frame."""

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
    """The text is not a schema of its type, or not suitable. The message says where and why."""


@dataclass(slots=True, frozen=True)
class Incompatibility:
    """One reason why a reader's schema cannot read data of a writer's schema.

    The description has the placeholders `{reader}` and `{writer}`: only the caller knows which of
    the two schemas is the new one.
    """

    error_type: str
    description: str
    additional: str = ""

    def describe(self, reader: str, writer: str) -> str:
        """Returns the description with names for the two schemas, such as "new" and "old"."""
        return self.description.replace("{reader}", reader).replace("{writer}", writer)


class ParsedSchema(Protocol):
    @property
    def text(self) -> str:
        """The text as it is stored and returned."""
        ...

    @property
    def normalized(self) -> str:
        """The normalized text: the same for all texts that mean the same."""
        ...

    @property
    def resolved(self) -> str:
        """The text with references inlined if the language allows that, else the stored text."""
        ...

    @property
    def name(self) -> str | None:
        """The name of the outermost record, message or document."""
        ...

    def require_valid(self) -> None:
        """Raises SchemaError for faults that old schemas may have and new ones must not."""
        ...

    def require_resolved(self, *, strict: bool) -> None:
        """Raises SchemaError for names that are not defined, which an imported schema may have.

        `strict` also rejects what Confluent's registry rejects with `validateFields`.
        """
        ...

    def has_top_level_field(self, name: str) -> bool:
        """Returns whether the outermost record, message or document has the field."""
        ...

    def find_incompatibilities(
        self, written: "ParsedSchema", *, lenient: bool = False
    ) -> list[Incompatibility]:
        """Returns why data of `written` cannot be read with this schema, or nothing if it can.

        Both schemas must have the same type. `lenient` ignores what open content models of JSON
        Schema leave undecided; it is the policy LENIENT of Confluent's registry.
        """
        ...


_MODULES = {
    SchemaType.AVRO: "barnabas.schemas.avro",
    SchemaType.JSON: "barnabas.schemas.json_schema",
    SchemaType.PROTOBUF: "barnabas.schemas.protobuf",
}


def parse(schema_type: SchemaType, text: str, references: Mapping[str, str]) -> ParsedSchema:
    """Parses a schema. Raises SchemaError if the text is not valid.

    `references` has the texts that it refers to, directly or not, by the names it uses for them.
    """
    with extra_required_by(f"A schema of type {schema_type}"):
        module = import_module(_MODULES[schema_type])
    parsed: ParsedSchema = module.parse(text, references)
    return parsed


@contextmanager
def extra_required_by(feature: str, extra: str = "registry") -> Iterator[None]:
    """Wraps imports of optional libraries: the error for a missing one names the extra."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("barnabas"):
            raise
        raise ImportError(
            f"{feature} needs {missing.name}: pip install 'barnabas[{extra}]'"
        ) from None
