"""SchemaRegistryClient: a registry's REST API as methods, remembering what cannot change.

A schema under an id, and a version of a subject, stay what they are: they are asked for once. The
latest version can change: `cache.latest.ttl.sec` says for how long an answer is good enough.
"""

from collections.abc import Mapping
from typing import Any, Self

from barnabas.schema_registry.client.administration import RegistryAdministration
from barnabas.schema_registry.client.cache import SubjectCache
from barnabas.schema_registry.client.http import RegistryHttp, quote_path_segment
from barnabas.schema_registry.client.models import RegisteredSchema, Schema, SchemaVersion
from barnabas.schema_registry.client.settings import ClientSettings


class SchemaRegistryClient(RegistryAdministration):
    """A client of a schema registry; safe to share by threads."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self._conf = conf
        settings = ClientSettings.read(conf)
        self._http = RegistryHttp(settings)
        capacity = settings.cache_capacity
        self._by_id: SubjectCache[Schema] = SubjectCache(capacity)
        self._registered: SubjectCache[RegisteredSchema] = SubjectCache(capacity)
        self._found: SubjectCache[RegisteredSchema] = SubjectCache(capacity)
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
        """Close its connections; may be called again."""
        self._http.close()

    def config(self) -> Mapping[str, Any]:
        """The settings it was made with."""
        return self._conf

    # -- schemas of a subject

    def register_schema(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> int:
        """The id under which the subject has this schema, from now on or since before."""
        answer = self.register_schema_full_response(subject_name, schema, normalize_schemas)
        assert answer.schema_id is not None
        return answer.schema_id

    def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """As register_schema, with all that the registry tells of it."""
        known = self._registered.get(subject_name, schema, normalize_schemas)
        if known is not None:
            return known
        answer = self._http.request(
            "POST",
            f"subjects/{quote_path_segment(subject_name)}/versions",
            {"normalize": normalize_schemas},
            schema.to_dict(),
        )
        # A registry of before 2023 answers with the id alone.
        registered = RegisteredSchema.from_dict(
            schema.to_dict() | {"subject": subject_name} | answer
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
        """The version of the subject that is this schema; its text is as it was given."""
        key = subject_name, schema, normalize_schemas, deleted
        known = self._found.get(*key)
        if known is not None:
            return known
        query = _known(normalize=normalize_schemas, deleted=deleted, format=fmt)
        answer = self._http.request(
            "POST", f"subjects/{quote_path_segment(subject_name)}", query, schema.to_dict()
        )
        found = RegisteredSchema.from_dict(answer | schema.to_dict())
        return self._found.put(found, *key)

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        known = self._latest.get(subject_name, fmt)
        if known is not None:
            return known
        answer = self._http.request(
            "GET",
            f"subjects/{quote_path_segment(subject_name)}/versions/latest",
            _known(format=fmt),
        )
        return self._latest.put(RegisteredSchema.from_dict(answer), subject_name, fmt)

    def get_latest_with_metadata(
        self,
        subject_name: str,
        metadata: dict[str, str],
        deleted: bool = False,
        fmt: str | None = None,
    ) -> RegisteredSchema:
        """The latest version whose metadata has these properties."""
        key = subject_name, frozenset(metadata.items()), deleted, fmt
        known = self._latest.get(*key)
        if known is not None:
            return known
        query = _known(deleted=deleted, format=fmt)
        query |= {"key": list(metadata), "value": list(metadata.values())}
        answer = self._http.request(
            "GET", f"subjects/{quote_path_segment(subject_name)}/metadata", query
        )
        return self._latest.put(RegisteredSchema.from_dict(answer), *key)

    def get_version(
        self,
        subject_name: str,
        version: int | str = "latest",
        deleted: bool = False,
        fmt: str | None = None,
    ) -> RegisteredSchema:
        key = subject_name, version, deleted, fmt
        known = self._versions.get(*key) if version != "latest" else None
        if known is not None:
            return known
        answer = self._http.request(
            "GET",
            f"subjects/{quote_path_segment(subject_name)}/versions/{version}",
            _known(deleted=deleted, format=fmt),
        )
        found = RegisteredSchema.from_dict(answer)
        return self._versions.put(found, subject_name, found.version, deleted, fmt)

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
        """The ids of the schemas that refer to this version."""
        ids: list[int] = self._http.request(
            "GET",
            f"subjects/{quote_path_segment(subject_name)}/versions/{version}/referencedby",
            {"offset": offset, "limit": limit},
        )
        return ids

    # -- schemas by themselves

    def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """The schema under an id; `subject_name` says in which context the id is meant."""
        key = subject_name, schema_id, fmt, reference_format
        known = self._by_id.get(*key)
        if known is not None:
            return known
        query = _known(subject=subject_name, format=fmt, reference_format=reference_format)
        answer = self._http.request("GET", f"schemas/ids/{schema_id}", query)
        return self._by_id.put(Schema.from_dict(answer), *key)

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        known = self._by_id.get(None, guid, fmt)
        if known is not None:
            return known
        answer = self._http.request("GET", f"schemas/guids/{guid}", _known(format=fmt))
        return self._by_id.put(Schema.from_dict(answer), None, guid, fmt)

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
        query = _known(subject=subject_name, deleted=deleted, offset=offset, limit=limit)
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
        query = _known(subject=subject_name, deleted=deleted, offset=offset, limit=limit)
        answer = self._http.request("GET", f"schemas/ids/{schema_id}/versions", query)
        return [SchemaVersion.from_dict(item) for item in answer]

    # -- deletion

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Its versions, which are deleted; for good only if they were deleted before."""
        versions: list[int] = self._http.request(
            "DELETE", f"subjects/{quote_path_segment(subject_name)}", {"permanent": permanent}
        )
        self._forget(subject_name)
        return versions

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        deleted: int = self._http.request(
            "DELETE",
            f"subjects/{quote_path_segment(subject_name)}/versions/{version}",
            {"permanent": permanent},
        )
        self._forget(subject_name)
        return deleted

    # -- what is remembered

    def clear_latest_caches(self) -> None:
        self._latest.clear()

    def clear_caches(self) -> None:
        for cache in self._caches:
            cache.clear()

    @property
    def _caches(self) -> tuple[SubjectCache[Any], ...]:
        return self._by_id, self._registered, self._found, self._versions, self._latest

    def _forget(self, subject: str) -> None:
        for cache in self._caches:
            cache.remove_subject(subject)


def _known(**query: Any) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def fetch_referenced_texts(schema: Any, client: Any) -> dict[str, str]:
    """Their texts by the names they are referred to by; what is referred to comes first."""
    texts: dict[str, str] = {}
    _collect(schema, client, texts)
    return texts


def _collect(schema: Any, client: Any, texts: dict[str, str]) -> None:
    for reference in schema.references or ():
        if reference.name in texts:
            continue
        # Deleted versions too: what was written with them is still to be read.
        version = client.get_version(reference.subject, reference.version, True)
        _collect(version.schema, client, texts)
        texts[reference.name] = version.schema.schema_str
