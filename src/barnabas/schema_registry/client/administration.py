"""The part of a registry's client that is about its settings, not about schemas' texts."""

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
        """Whether the schema could follow that version."""
        path = f"compatibility/subjects/{quote_path_segment(subject_name)}/versions/{version}"
        return self._is_compatible(path, schema, normalize, verbose)

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Whether the schema could follow those versions that the subject's level asks about."""
        path = f"compatibility/subjects/{quote_path_segment(subject_name)}/versions"
        return self._is_compatible(path, schema, normalize, verbose)

    def _is_compatible(self, path: str, schema: Schema, normalize: bool, verbose: bool) -> bool:
        query = {"normalize": normalize, "verbose": verbose}
        answer: bool = self._http.request("POST", path, query, schema.to_dict())["is_compatible"]
        return answer

    def set_compatibility(
        self, subject_name: str | None = None, level: str | None = None
    ) -> dict[str, str]:
        """Set the level of a subject, or of all that have none; what the registry answers."""
        if level is None:
            raise ValueError("level is missing, like BACKWARD")
        answer: dict[str, str] = self._http.request(
            "PUT", _of("config", subject_name), body={"compatibility": level.upper()}
        )
        return answer

    def get_compatibility(self, subject_name: str | None = None) -> str:
        level: str = self._http.request("GET", _of("config", subject_name))["compatibilityLevel"]
        return level

    # -- configs

    def set_config(
        self, subject_name: str | None = None, config: ServerConfig | None = None
    ) -> dict[str, Any]:
        if config is None:
            raise ValueError("config is missing: what the subject is to have")
        answer: dict[str, Any] = self._http.request(
            "PUT", _of("config", subject_name), body=config.to_dict()
        )
        return answer

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        return ServerConfig.from_dict(self._http.request("GET", _of("config", subject_name)))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """What the subject had; it has the one of all now."""
        return ServerConfig.from_dict(self._http.request("DELETE", _of("config", subject_name)))

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
        answer: str = self._http.request(method, _of("mode", subject), query, body)["mode"]
        return answer

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
        """The subjects of a topic in a cluster, whose id is the namespace ("-": whichever)."""
        query = _filters(resource_type, association_types)
        if offset > 0:
            query["offset"] = offset
        if limit >= 1:
            query["limit"] = limit
        path = f"associations/resources/{quote_path_segment(resource_namespace)}/{quote_path_segment(resource_name)}"
        answer = self._http.request("GET", path, query)
        return [Association.from_dict(item) for item in answer]

    def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        answer = self._http.request("POST", "associations", body=request.to_dict())
        return AssociationResponse.from_dict(answer)

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


def _of(kind: str, subject: str | None) -> str:
    return kind if subject is None else f"{kind}/{quote_path_segment(subject)}"


def _filters(resource_type: str | None, association_types: list[str] | None) -> dict[str, Any]:
    query: dict[str, Any] = {}
    if resource_type is not None:
        query["resourceType"] = resource_type
    if association_types is not None:
        query["associationType"] = association_types
    return query
