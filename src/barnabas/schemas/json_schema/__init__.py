"""JSON Schema, drafts 4 to 2020-12: checked against meta-schemas, compared keyword by keyword."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from barnabas.schemas import Incompatibility, ParsedSchema, json_text
from barnabas.schemas.json_schema import comparison, documents


def parse(text: str, references: Mapping[str, str]) -> "JsonSchema":
    root = documents.parse_document(text, references)
    return JsonSchema(json_text.read(text), root)


@dataclass(frozen=True, eq=False)
class JsonSchema:
    document: object
    root: documents.Subschema

    @cached_property
    def text(self) -> str:
        return json_text.write(self.document)

    @cached_property
    def normalized(self) -> str:
        return json_text.write(json_text.ordered(self.document))

    @property
    def resolved(self) -> str:
        return self.text

    @property
    def name(self) -> str | None:
        title = self.document.get("title") if isinstance(self.document, Mapping) else None
        return title if isinstance(title, str) else None

    def require_valid(self) -> None:
        """Parsing has already validated the schema."""

    def find_incompatibilities(self, written: ParsedSchema) -> list[Incompatibility]:
        assert isinstance(written, JsonSchema)
        return comparison.incompatibilities(self.root, written.root)
