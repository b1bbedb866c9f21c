"""Avro schemas: parsed, validated, written as Confluent's registry does, compared by resolution."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from barnabas.schemas import Incompatibility, ParsedSchema
from barnabas.schemas.avro import comparison, validation, writer
from barnabas.schemas.avro.model import AvroRecord, AvroType
from barnabas.schemas.avro.parser import AvroParser


def parse(text: str, references: Mapping[str, str]) -> "AvroSchema":
    parser = AvroParser(references)
    parser.parse_references()
    referenced = frozenset(parser.named)
    return AvroSchema(parser.parse(text), referenced)


@dataclass(frozen=True, eq=False)
class AvroSchema:
    schema: AvroType
    referenced: frozenset[str]
    """Names that references define: the schema's text uses them without defining them."""

    @cached_property
    def text(self) -> str:
        return writer.write_schema(self.schema, self.referenced, normalize=False)

    @cached_property
    def normalized(self) -> str:
        return writer.write_schema(self.schema, self.referenced, normalize=True)

    @cached_property
    def resolved(self) -> str:
        """The text with the definitions of its references inlined."""
        return writer.write_schema(self.schema, (), normalize=False)

    @property
    def name(self) -> str | None:
        return self.schema.name.full if isinstance(self.schema, AvroRecord) else None

    def require_valid(self) -> None:
        """Referenced schemas are not validated again: they are already registered."""
        validation.validate(self.schema, self.referenced)

    def require_resolved(self, *, strict: bool) -> None:
        """Parsing has already resolved all names."""

    def has_top_level_field(self, name: str) -> bool:
        fields = self.schema.fields if isinstance(self.schema, AvroRecord) else ()
        return any(field.name == name for field in fields)

    def find_incompatibilities(
        self, written: ParsedSchema, *, lenient: bool = False
    ) -> list[Incompatibility]:
        assert isinstance(written, AvroSchema)
        return comparison.incompatibilities(self.schema, written.schema)
