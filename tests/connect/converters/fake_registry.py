"""A schema registry in memory, in place of the client of a converter."""

from typing import Any, Self

import pytest

from barnabas.connect.converters.registry import RegistryConverter
from barnabas.schema_registry import (
    RegisteredSchema,
    RegistryUnreachableError,
    Schema,
    SchemaRegistryError,
)


class FakeRegistry:
    def __init__(self, language: str) -> None:
        self._language = language
        self.schemas: list[Schema] = []
        self.subjects: dict[str, list[int]] = {}
        self.is_down = False

    @classmethod
    def installed(cls, patch: pytest.MonkeyPatch, converter_class: type[RegistryConverter]) -> Self:
        """Returns a registry that all converters of the class use."""
        registry = cls(converter_class.language)
        patch.setattr(converter_class, "_registry", lambda _converter: registry)
        return registry

    def register(self, subject: str, text: str) -> int:
        return self.register_schema(subject, Schema(text, self._language))

    def register_schema(self, subject: str, schema: Schema, _normalize: bool = False) -> int:
        self._require_up()
        if schema not in self.schemas:
            self.schemas.append(schema)
        schema_id = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def lookup_schema(
        self, subject: str, schema: Schema, _normalize: bool = False
    ) -> RegisteredSchema:
        self._require_up()
        for schema_id in self.subjects.get(subject, []):
            if self.schemas[schema_id - 1] == schema:
                return self._registered(subject, schema_id)
        raise SchemaRegistryError(404, 40403, "Schema not found")

    def get_latest_version(self, subject: str) -> RegisteredSchema:
        self._require_up()
        if subject not in self.subjects:
            raise SchemaRegistryError(404, 40401, f"Subject '{subject}' not found.")
        return self._registered(subject, self.subjects[subject][-1])

    def get_schema(self, schema_id: int, _subject: Any = None) -> Schema:
        self._require_up()
        if not 0 < schema_id <= len(self.schemas):
            raise SchemaRegistryError(404, 40403, f"Schema {schema_id} not found")
        return self.schemas[schema_id - 1]

    def _registered(self, subject: str, schema_id: int) -> RegisteredSchema:
        return RegisteredSchema(subject, 1, schema_id, None, self.schemas[schema_id - 1])

    def _require_up(self) -> None:
        if self.is_down:
            raise RegistryUnreachableError("no registry responds")
