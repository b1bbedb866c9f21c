"""SchemaRegistryClient: a registry's REST API as methods, with a cache.

The schema of an id and a version of a subject never change, so they are requested once. The latest
version can change: `cache.latest.ttl.sec` limits how long it is cached.
"""

from collections.abc import Mapping
from typing import Any, Self

from barnabas.schema_registry.client.administration import RegistryAdministration
from barnabas.schema_registry.client.cache import SubjectCache
from barnabas.schema_registry.client.http import RegistryHttp, quote_path_segment
from barnabas.schema_registry.client.models import RegisteredSchema, Schema, SchemaVersion
from barnabas.schema_registry.client.settings import ClientSettings


class SchemaRegistryClient(RegistryAdministration):
    """A client of a schema registry. Thread-safe."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._conf = conf
        settings = ClientSettings.read(conf)
        self._http = RegistryHttp(settings)
        capacity = settings.cache_capacity
        self._by_id: SubjectCache[Schema] = SubjectCache(capacity)
        self._registered: SubjectCache[RegisteredSchema] = SubjectCache(capacity)
        self._looked_up: SubjectCache[RegisteredSchema] = SubjectCache(capacity)
        self._versions: SubjectCache[RegisteredSchema] = SubjectCache(capacity)
        self._latest: SubjectCache[RegisteredSchema] = SubjectCache(capacity, settings.latest_ttl_s)

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> "SchemaRegistryClient":
        return SchemaRegistryClient(conf)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. May be called repeatedly."""
        self._http.close()

    def config(self) -> Mapping[str, Any]:
        """Returns the settings that the client was created with."""
        return self._conf

    # -- schemas of a subject

    def register_schema(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> int:
        """Registers the schema unless the subject has it already. Returns its id."""
        registered = self.register_schema_full_response(subject_name, schema, normalize_schemas)
        assert registered.schema_id is not None
        return registered.schema_id

    def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """As register_schema, but returns the whole response."""
        cached = self._registered.get(subject_name, schema, normalize_schemas)
        if cached is not None:
            return cached
        response = self._http.request(
            "POST",
            f"subjects/{quote_path_segment(subject_name)}/versions",
            {"normalize": normalize_schemas},
            schema.to_dict(),
        )
        # Registries before 2023 respond with the id only.
        registered = RegisteredSchema.from_dict(
            schema.to_dict() | {"subject": subject_name} | response
        )
        self._latest.remove_subject(subject_name)
        return self._registered.put(registered, subject_name, schema, normalize_schemas)

    def lookup_schema(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,
        fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        """Returns the version of the subject that has this schema. Its text is the given one."""
        key = subject_name, schema, normalize_schemas, deleted
        cached = self._looked_up.get(*key)
        if cached is not None:
            return cached
        query = _without_none(normalize=normalize_schemas, deleted=deleted, format=fmt)
        response = self._http.request(
            "POST", f"subjects/{quote_path_segment(subject_name)}", query, schema.to_dict()
        )
        version = RegisteredSchema.from_dict(response | schema.to_dict())
        return self._looked_up.put(version, *key)

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        cached = self._latest.get(subject_name, fmt)
        if cached is not None:
            return cached
        response = self._http.request(
            "GET",
            f"subjects/{quote_path_segment(subject_name)}/versions/latest",
            _without_none(format=fmt),
        )
        return self._latest.put(RegisteredSchema.from_dict(response), subject_name, fmt)

    def get_latest_with_metadata(
        self,
        subject_name: str,
        metadata: dict[str, str],
        deleted: bool = False,
        fmt: str | None = None,
    ) -> RegisteredSchema:
        """Returns the latest version whose metadata has these properties."""
        key = subject_name, frozenset(metadata.items()), deleted, fmt
        cached = self._latest.get(*key)
        if cached is not None:
            return cached
        query = _without_none(deleted=deleted, format=fmt)
        query |= {"key": list(metadata), "value": list(metadata.values())}
        response = self._http.request(
            "GET", f"subjects/{quote_path_segment(subject_name)}/metadata", query
        )
        return self._latest.put(RegisteredSchema.from_dict(response), *key)

    def get_version(
        self,
        subject_name: str,
        version: int | str = "latest",
        deleted: bool = False,
        fmt: str | None = None,
    ) -> RegisteredSchema:
        key = subject_name, version, deleted, fmt
        cached = self._versions.get(*key) if version != "latest" else None
        if cached is not None:
            return cached
        response = self._http.request(
            "GET",
            f"subjects/{quote_path_segment(subject_name)}/versions/{version}",
            _without_none(deleted=deleted, format=fmt),
        )
        registered = RegisteredSchema.from_dict(response)
        return self._versions.put(registered, subject_name, registered.version, deleted, fmt)

    def get_versions(
        self,
        subject_name: str,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[int]:
        versions: list[int] = self._http.request(
            "GET",
            f"subjects/{quote_path_segment(subject_name)}/versions",
            {"deleted": deleted, "deleted_only": deleted_only, "offset": offset, "limit": limit},
        )
        return versions

    def get_referenced_by(
        self, subject_name: str, version: int | str = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Returns the ids of the schemas that refer to this version."""
        ids: list[int] = self._http.request(
            "GET",
            f"subjects/{quote_path_segment(subject_name)}/versions/{version}/referencedby",
            {"offset": offset, "limit": limit},
        )
        return ids

    # -- schemas by id

    def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """Returns the schema with an id. `subject_name` selects the context of the id."""
        key = subject_name, schema_id, fmt, reference_format
        cached = self._by_id.get(*key)
        if cached is not None:
            return cached
        query = _without_none(subject=subject_name, format=fmt, reference_format=reference_format)
        response = self._http.request("GET", f"schemas/ids/{schema_id}", query)
        return self._by_id.put(Schema.from_dict(response), *key)

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        cached = self._by_id.get(None, guid, fmt)
        if cached is not None:
            return cached
        response = self._http.request("GET", f"schemas/guids/{guid}", _without_none(format=fmt))
        return self._by_id.put(Schema.from_dict(response), None, guid, fmt)

    def get_schema_types(self) -> list[str]:
        types: list[str] = self._http.request("GET", "schemas/types")
        return types

    def get_subjects_by_schema_id(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        query = _without_none(subject=subject_name, deleted=deleted, offset=offset, limit=limit)
        subjects: list[str] = self._http.request("GET", f"schemas/ids/{schema_id}/subjects", query)
        return subjects

    def get_schema_versions(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[SchemaVersion]:
        query = _without_none(subject=subject_name, deleted=deleted, offset=offset, limit=limit)
        response = self._http.request("GET", f"schemas/ids/{schema_id}/versions", query)
        return [SchemaVersion.from_dict(item) for item in response]

    # -- deletion

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Returns the deleted versions. They must be soft-deleted before a permanent deletion."""
        versions: list[int] = self._http.request(
            "DELETE", f"subjects/{quote_path_segment(subject_name)}", {"permanent": permanent}
        )
        self._remove_from_caches(subject_name)
        return versions

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        deleted: int = self._http.request(
            "DELETE",
            f"subjects/{quote_path_segment(subject_name)}/versions/{version}",
            {"permanent": permanent},
        )
        self._remove_from_caches(subject_name)
        return deleted

    # -- caches

    def clear_latest_caches(self) -> None:
        self._latest.clear()

    def clear_caches(self) -> None:
        for cache in self._caches:
            cache.clear()

    @property
    def _caches(self) -> tuple[SubjectCache[Any], ...]:
        return self._by_id, self._registered, self._looked_up, self._versions, self._latest

    def _remove_from_caches(self, subject: str) -> None:
        for cache in self._caches:
            cache.remove_subject(subject)


def _without_none(**query: Any) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def fetch_referenced_texts(schema: Any, client: Any) -> dict[str, str]:
    """Returns the texts that a schema refers to, by name, each after those that it refers to."""
    texts: dict[str, str] = {}
    _collect(schema, client, texts)
    return texts


def _collect(schema: Any, client: Any, texts: dict[str, str]) -> None:
    for reference in schema.references or ():
        if reference.name in texts:
            continue
        # Including deleted versions: data that was written with them must stay readable.
        version = client.get_version(reference.subject, reference.version, True)
        _collect(version.schema, client, texts)
        texts[reference.name] = version.schema.schema_str
