"""JSON Schema, drafts 4 to 2020-12: checked against meta-schemas, compared keyword by keyword."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from barnabas.schemas import Incompatibility, ParsedSchema, SchemaError, json_text
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

    def require_resolved(self, *, strict: bool) -> None:
        """Parsing has already resolved all references. If `strict`, no property starts with $$."""
        if not strict:
            return
        for name in self._properties:
            if name.startswith("$$"):
                raise SchemaError(f"#/properties/{name}: Field names cannot start with $$ prefix")

    def has_top_level_field(self, name: str) -> bool:
        return name in self._properties

    def find_incompatibilities(
        self, written: ParsedSchema, *, lenient: bool = False
    ) -> list[Incompatibility]:
        assert isinstance(written, JsonSchema)
        return comparison.incompatibilities(self.root, written.root, lenient=lenient)

    @property
    def _properties(self) -> Mapping[str, object]:
        found = self.document.get("properties") if isinstance(self.document, Mapping) else None
        return found if isinstance(found, Mapping) else {}
