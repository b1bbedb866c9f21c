"""The client for asyncio: runs the methods of the synchronous client on threads.

Each schema is requested once, so the cost of threads is negligible.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from barnabas.schema_registry.client.client import SchemaRegistryClient

P = ParamSpec("P")
R = TypeVar("R")


def _on_thread(
    method: Callable[Concatenate[SchemaRegistryClient, P], R],
) -> Callable[Concatenate["AsyncSchemaRegistryClient", P], Coroutine[Any, Any, R]]:
    async def call(self: "AsyncSchemaRegistryClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.sync_client, *args, **kwargs)

    update_wrapper(call, method)
    return call


class AsyncSchemaRegistryClient:
    """SchemaRegistryClient with coroutines as methods."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self.sync_client = SchemaRegistryClient(conf)

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> "AsyncSchemaRegistryClient":
        return AsyncSchemaRegistryClient(conf)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def config(self) -> Mapping[str, Any]:
        return self.sync_client.config()

    aclose = _on_thread(SchemaRegistryClient.close)
    register_schema = _on_thread(SchemaRegistryClient.register_schema)
    register_schema_full_response = _on_thread(SchemaRegistryClient.register_schema_full_response)
    lookup_schema = _on_thread(SchemaRegistryClient.lookup_schema)
    get_latest_version = _on_thread(SchemaRegistryClient.get_latest_version)
    get_latest_with_metadata = _on_thread(SchemaRegistryClient.get_latest_with_metadata)
    get_version = _on_thread(SchemaRegistryClient.get_version)
    get_versions = _on_thread(SchemaRegistryClient.get_versions)
    get_referenced_by = _on_thread(SchemaRegistryClient.get_referenced_by)
    get_schema = _on_thread(SchemaRegistryClient.get_schema)
    get_schema_by_guid = _on_thread(SchemaRegistryClient.get_schema_by_guid)
    get_schema_types = _on_thread(SchemaRegistryClient.get_schema_types)
    get_subjects_by_schema_id = _on_thread(SchemaRegistryClient.get_subjects_by_schema_id)
    get_schema_versions = _on_thread(SchemaRegistryClient.get_schema_versions)
    get_subjects = _on_thread(SchemaRegistryClient.get_subjects)
    get_contexts = _on_thread(SchemaRegistryClient.get_contexts)
    delete_subject = _on_thread(SchemaRegistryClient.delete_subject)
    delete_version = _on_thread(SchemaRegistryClient.delete_version)
    test_compatibility = _on_thread(SchemaRegistryClient.test_compatibility)
    test_compatibility_all_versions = _on_thread(
        SchemaRegistryClient.test_compatibility_all_versions
    )
    set_compatibility = _on_thread(SchemaRegistryClient.set_compatibility)
    get_compatibility = _on_thread(SchemaRegistryClient.get_compatibility)
    set_config = _on_thread(SchemaRegistryClient.set_config)
    get_config = _on_thread(SchemaRegistryClient.get_config)
    delete_config = _on_thread(SchemaRegistryClient.delete_config)
    get_mode = _on_thread(SchemaRegistryClient.get_mode)
    update_mode = _on_thread(SchemaRegistryClient.update_mode)
    delete_mode = _on_thread(SchemaRegistryClient.delete_mode)
    get_global_mode = _on_thread(SchemaRegistryClient.get_global_mode)
    update_global_mode = _on_thread(SchemaRegistryClient.update_global_mode)
    get_associations_by_resource_name = _on_thread(
        SchemaRegistryClient.get_associations_by_resource_name
    )
    create_association = _on_thread(SchemaRegistryClient.create_association)
    delete_associations = _on_thread(SchemaRegistryClient.delete_associations)
    clear_latest_caches = _on_thread(SchemaRegistryClient.clear_latest_caches)
    clear_caches = _on_thread(SchemaRegistryClient.clear_caches)
