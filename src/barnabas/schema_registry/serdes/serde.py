"""What serializers and deserializers have in common: a client, and how subjects are named."""

from collections.abc import Callable
from typing import Any

from barnabas.schema_registry.serdes.settings import SchemaChoice
from barnabas.schema_registry.serdes.subjects import SubjectNaming


class RegistrySerde:
    """The client is closed with it only if it was made for it."""

    _registry: Any
    _choice: SchemaChoice
    _naming: SubjectNaming
    _owns_registry = False

    @property
    def follows_latest(self) -> bool:
        """Whether the registry may have to be asked at any time."""
        return self._choice.is_made

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        self._naming.set_cluster_id_resolver(resolver)

    def own_schema_registry_client(self) -> None:
        """Close the client with this."""
        self._owns_registry = True

    def close(self) -> None:
        if self._owns_registry:
            self._registry.close()
