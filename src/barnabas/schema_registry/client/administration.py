"""The part of the client that does not cache: subjects, compatibility, configs, modes, contexts."""

from typing import Any

from barnabas.schema_registry.client.http import RegistryHttp, quote_path_segment
from barnabas.schema_registry.client.models import (
    Association,
    AssociationCreateOrUpdateRequest,
    AssociationResponse,
    Schema,
    ServerConfig,
)


class RegistryAdministration:
    """Subjects, compatibility, configs, modes, contexts, associations."""

    _http: RegistryHttp

    def get_subjects(
        self,
        subject_prefix: str | None = None,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        query: dict[str, Any] = {"deleted": deleted, "deleted_only": deleted_only}
        query |= {"offset": offset, "limit": limit}
        if subject_prefix is not None:
            query["subjectPrefix"] = subject_prefix
        subjects: list[str] = self._http.request("GET", "subjects", query)
        return subjects

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        query = {"offset": offset, "limit": limit}
        contexts: list[str] = self._http.request("GET", "contexts", query)
        return contexts

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
        path = f"compatibility/subjects/{quote_path_segment(subject_name)}/versions/{version}"
        return self._is_compatible(path, schema, normalize, verbose)

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Returns whether the schema is compatible with the versions that the level requires."""
        path = f"compatibility/subjects/{quote_path_segment(subject_name)}/versions"
        return self._is_compatible(path, schema, normalize, verbose)

    def _is_compatible(self, path: str, schema: Schema, normalize: bool, verbose: bool) -> bool:
        query = {"normalize": normalize, "verbose": verbose}
        is_compatible: bool = self._http.request("POST", path, query, schema.to_dict())[
            "is_compatible"
        ]
        return is_compatible

    def set_compatibility(
        self, subject_name: str | None = None, level: str | None = None
    ) -> dict[str, str]:
        """Sets the level of a subject, or the global one. Returns the registry's response."""
        if level is None:
            raise ValueError("level is missing, like BACKWARD")
        response: dict[str, str] = self._http.request(
            "PUT", _scope_path("config", subject_name), body={"compatibility": level.upper()}
        )
        return response

    def get_compatibility(self, subject_name: str | None = None) -> str:
        level: str = self._http.request("GET", _scope_path("config", subject_name))[
            "compatibilityLevel"
        ]
        return level

    # -- configs

    def set_config(
        self, subject_name: str | None = None, config: ServerConfig | None = None
    ) -> dict[str, Any]:
        if config is None:
            raise ValueError("config is missing: the config to set")
        response: dict[str, Any] = self._http.request(
            "PUT", _scope_path("config", subject_name), body=config.to_dict()
        )
        return response

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        return ServerConfig.from_dict(
            self._http.request("GET", _scope_path("config", subject_name))
        )

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Returns the removed config. The global one applies from now on."""
        return ServerConfig.from_dict(
            self._http.request("DELETE", _scope_path("config", subject_name))
        )

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
        response: str = self._http.request(method, _scope_path("mode", subject), query, body)[
            "mode"
        ]
        return response

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
        query = _filters(resource_type, association_types)
        if offset > 0:
            query["offset"] = offset
        if limit >= 1:
            query["limit"] = limit
        namespace, name = quote_path_segment(resource_namespace), quote_path_segment(resource_name)
        response = self._http.request("GET", f"associations/resources/{namespace}/{name}", query)
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
        query = _filters(resource_type, association_types)
        query["cascadeLifecycle"] = cascade_lifecycle
        self._http.request(
            "DELETE", f"associations/resources/{quote_path_segment(resource_id)}", query
        )


def _scope_path(kind: str, subject: str | None) -> str:
    return kind if subject is None else f"{kind}/{quote_path_segment(subject)}"


def _filters(resource_type: str | None, association_types: list[str] | None) -> dict[str, Any]:
    query: dict[str, Any] = {}
    if resource_type is not None:
        query["resourceType"] = resource_type
    if association_types is not None:
        query["associationType"] = association_types
    return query
