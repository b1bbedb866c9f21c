"""SchemaRegistryClient: a registry's REST API as methods, with a cache.

The schema of an id and a version of a subject never change, so they are requested once. The latest
version can change: `cache.latest.ttl.sec` limits how long it is cached.
"""

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote

from barnabas.schema_registry.client.cache import SubjectCache
from barnabas.schema_registry.client.http import RegistryHttp
from barnabas.schema_registry.client.models import (
    Association,
    AssociationCreateOrUpdateRequest,
    AssociationResponse,
    RegisteredSchema,
    Schema,
    SchemaVersion,
    ServerConfig,
)
from barnabas.schema_registry.client.settings import ClientSettings


class SchemaRegistryClient:
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
        path = _path("subjects", subject_name) + "/versions"
        query = {"normalize": normalize_schemas}
        response = self._http.request("POST", path, query, schema.to_dict())
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
        path = _path("subjects", subject_name)
        query = {"normalize": normalize_schemas, "deleted": deleted, "format": fmt}
        response = self._http.request("POST", path, query, schema.to_dict())
        version = RegisteredSchema.from_dict(response | schema.to_dict())
        return self._looked_up.put(version, *key)

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        cached = self._latest.get(subject_name, fmt)
        if cached is not None:
            return cached
        path = _path("subjects", subject_name) + "/versions/latest"
        response = self._http.request("GET", path, {"format": fmt})
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
        path = _path("subjects", subject_name) + "/metadata"
        properties = {"key": list(metadata), "value": list(metadata.values())}
        query = {"deleted": deleted, "format": fmt, **properties}
        response = self._http.request("GET", path, query)
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
        path = _path("subjects", subject_name) + f"/versions/{version}"
        response = self._http.request("GET", path, {"deleted": deleted, "format": fmt})
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
        path = _path("subjects", subject_name) + "/versions"
        query = {"deleted": deleted, "deleted_only": deleted_only}
        return self._list(path, query, offset, limit)

    def get_referenced_by(
        self, subject_name: str, version: int | str = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Returns the ids of the schemas that refer to this version."""
        path = _path("subjects", subject_name) + f"/versions/{version}/referencedby"
        return self._list(path, {}, offset, limit)

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
        query = {"subject": subject_name, "format": fmt, "reference_format": reference_format}
        response = self._http.request("GET", f"schemas/ids/{schema_id}", query)
        return self._by_id.put(Schema.from_dict(response), *key)

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        cached = self._by_id.get(None, guid, fmt)
        if cached is not None:
            return cached
        response = self._http.request("GET", f"schemas/guids/{guid}", {"format": fmt})
        return self._by_id.put(Schema.from_dict(response), None, guid, fmt)

    def get_schema_types(self) -> list[str]:
        return list(self._http.request("GET", "schemas/types"))

    def get_subjects_by_schema_id(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        query = {"subject": subject_name, "deleted": deleted}
        return self._list(f"schemas/ids/{schema_id}/subjects", query, offset, limit)

    def get_schema_versions(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[SchemaVersion]:
        query = {"subject": subject_name, "deleted": deleted}
        versions = self._list(f"schemas/ids/{schema_id}/versions", query, offset, limit)
        return [SchemaVersion.from_dict(version) for version in versions]

    # -- deletion

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Returns the deleted versions. They must be soft-deleted before a permanent deletion."""
        versions: list[int] = self._http.request(
            "DELETE", _path("subjects", subject_name), {"permanent": permanent}
        )
        self._remove_from_caches(subject_name)
        return versions

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        path = _path("subjects", subject_name) + f"/versions/{version}"
        deleted: int = self._http.request("DELETE", path, {"permanent": permanent})
        self._remove_from_caches(subject_name)
        return deleted

    # -- subjects and contexts

    def get_subjects(
        self,
        subject_prefix: str | None = None,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        query = {
            "deleted": deleted,
            "deleted_only": deleted_only,
            "subjectPrefix": subject_prefix,
        }
        return self._list("subjects", query, offset, limit)

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        return self._list("contexts", {}, offset, limit)

    def _list(self, path: str, query: Mapping[str, Any], offset: int, limit: int) -> list[Any]:
        return list(self._http.request("GET", path, {**query, "offset": offset, "limit": limit}))

    # -- compatibility

    def test_compatibility(
        self,
        subject_name: str,
        schema: Schema,
        version: int | str = "latest",
        normalize: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Returns whether the schema is compatible with that version."""
        path = _path("compatibility/subjects", subject_name) + f"/versions/{version}"
        return self._is_compatible(path, schema, normalize, verbose)

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Returns whether the schema is compatible with the versions that the level requires."""
        path = _path("compatibility/subjects", subject_name) + "/versions"
        return self._is_compatible(path, schema, normalize, verbose)

    def find_incompatibilities(
        self, subject_name: str, schema: Schema, normalize: bool = False
    ) -> list[str]:
        """Returns why the schema is not compatible with the versions that the level requires."""
        path = _path("compatibility/subjects", subject_name) + "/versions"
        query = {"normalize": normalize, "verbose": True}
        response = self._http.request("POST", path, query, schema.to_dict())
        if response["is_compatible"]:
            return []
        return list(response.get("messages") or ["the registry gives no reason"])

    def _is_compatible(self, path: str, schema: Schema, normalize: bool, verbose: bool) -> bool:
        query = {"normalize": normalize, "verbose": verbose}
        return bool(self._http.request("POST", path, query, schema.to_dict())["is_compatible"])

    def set_compatibility(
        self, subject_name: str | None = None, level: str | None = None
    ) -> dict[str, str]:
        """Sets the level of a subject, or the global one. Returns the registry's response."""
        if level is None:
            raise ValueError("level is missing, like BACKWARD")
        body = {"compatibility": level.upper()}
        return dict(self._http.request("PUT", _path("config", subject_name), body=body))

    def get_compatibility(self, subject_name: str | None = None) -> str:
        return str(self._http.request("GET", _path("config", subject_name))["compatibilityLevel"])

    # -- configs

    def set_config(
        self, subject_name: str | None = None, config: ServerConfig | None = None
    ) -> dict[str, Any]:
        if config is None:
            raise ValueError("config is missing: the config to set")
        return dict(self._http.request("PUT", _path("config", subject_name), body=config.to_dict()))

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        return ServerConfig.from_dict(self._http.request("GET", _path("config", subject_name)))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Returns the removed config. The global one applies from now on."""
        return ServerConfig.from_dict(self._http.request("DELETE", _path("config", subject_name)))

    # -- modes

    def get_mode(self, subject_name: str) -> str:
        return self._mode("GET", subject_name)

    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        return self._mode("PUT", subject_name, mode, force)

    def delete_mode(self, subject_name: str) -> str:
        return self._mode("DELETE", subject_name)

    def get_global_mode(self) -> str:
        return self._mode("GET", None)

    def update_global_mode(self, mode: str, force: bool = False) -> str:
        return self._mode("PUT", None, mode, force)

    def _mode(
        self, method: str, subject: str | None, mode: str | None = None, force: bool = False
    ) -> str:
        query = None if mode is None else {"force": force}
        body = None if mode is None else {"mode": mode}
        return str(self._http.request(method, _path("mode", subject), query, body)["mode"])

    # -- associations

    def get_associations_by_resource_name(
        self,
        resource_name: str,
        resource_namespace: str,
        resource_type: str | None = None,
        association_types: list[str] | None = None,
        offset: int = 0,
        limit: int = -1,
    ) -> list[Association]:
        """Returns the subjects of a topic in a cluster, whose id is the namespace ("-": any)."""
        query = {
            "resourceType": resource_type,
            "associationType": association_types,
            "offset": offset if offset > 0 else None,
            "limit": limit if limit > 0 else None,
        }
        path = _path("associations/resources", resource_namespace, resource_name)
        response = self._http.request("GET", path, query)
        return [Association.from_dict(item) for item in response]

    def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        response = self._http.request("POST", "associations", body=request.to_dict())
        return AssociationResponse.from_dict(response)

    def delete_associations(
        self,
        resource_id: str,
        resource_type: str | None = None,
        association_types: list[str] | None = None,
        cascade_lifecycle: bool = False,
    ) -> None:
        query = {
            "resourceType": resource_type,
            "associationType": association_types,
            "cascadeLifecycle": cascade_lifecycle,
        }
        self._http.request("DELETE", _path("associations/resources", resource_id), query)

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


def _path(collection: str, *names: str | None) -> str:
    """Returns the path of an entry, with its names percent-encoded; None stands for no entry."""
    return "/".join([collection, *(quote(name, safe="") for name in names if name is not None)])


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
