"""A client without a registry: assigns ids in order, and counts requests."""

from collections import Counter
from typing import Any
from uuid import UUID

from barnabas.schema_registry import RegisteredSchema, Schema, SchemaRegistryError


class FakeRegistryClient:
    def __init__(self) -> None:
        self.schemas: list[Schema] = []
        self.versions: dict[str, list[RegisteredSchema]] = {}
        self.requests: Counter[str] = Counter()

    def register_schema(self, subject: str, schema: Schema, **_: Any) -> int | None:
        return self.register_schema_full_response(subject, schema).schema_id

    def register_schema_full_response(
        self, subject: str, schema: Schema, **_: Any
    ) -> RegisteredSchema:
        self.requests["register"] += 1
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.versions.setdefault(subject, [])
        registered = [version for version in versions if version.schema_id == number]
        if registered:
            return registered[0]
        guid = str(UUID(int=number))
        versions.append(RegisteredSchema(subject, len(versions) + 1, number, guid, schema))
        return versions[-1]

    def lookup_schema(self, subject: str, schema: Schema, **_: Any) -> RegisteredSchema:
        self.requests["lookup"] += 1
        for item in self.versions.get(subject, ()):
            if item.schema == schema:
                return item
        raise SchemaRegistryError(404, 40403, "Schema not found")

    def get_schema(self, number: int, subject: str | None = None, fmt: Any = None) -> Schema:
        self.requests["schema"] += 1
        if not 0 < number <= len(self.schemas):
            raise SchemaRegistryError(404, 40403, f"Schema {number} not found")
        return self.schemas[number - 1]

    def get_schema_by_guid(self, guid: str, fmt: Any = None) -> Schema:
        return self.get_schema(UUID(guid).int)

    def get_latest_version(self, subject: str, fmt: Any = None) -> RegisteredSchema:
        self.requests["latest"] += 1
        return self.versions[subject][-1]

    def get_version(
        self, subject: str, version: int, deleted: bool = False, fmt: Any = None
    ) -> RegisteredSchema:
        return self.versions[subject][version - 1]

    def get_associations_by_resource_name(self, **_: Any) -> list[Any]:
        self.requests["associations"] += 1
        raise SchemaRegistryError(404, 404, "HTTP 404 Not Found")

    def close(self) -> None:
        self.requests["close"] += 1
