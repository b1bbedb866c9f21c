"""What serializers and deserializers share: their settings, schema selection and client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from barnabas.schema_registry.client.models import Schema
from barnabas.schema_registry.client.settings import reject_unknown_settings
from barnabas.schema_registry.serdes.subjects import SubjectNameResolver
from barnabas.serialization import SerializationError


class SerdeConf:
    """Settings that are taken by name. Those that are left at the end are unknown."""

    def __init__(self, conf: Mapping[str, Any] | None) -> None:
        self._left = dict(conf or {})
        self._names: list[str] = []

    def take(self, name: str, otherwise: Any = None) -> Any:
        self._names.append(name)
        return self._left.pop(name, otherwise)

    def flag(self, name: str, otherwise: bool) -> bool:
        value = self.take(name, otherwise)
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, not {value!r}")
        return value

    def function(self, name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        function: Callable[..., Any] = self.take(name, otherwise)
        if not callable(function):
            raise ValueError(f"{name} must be callable, not {function!r}")
        return function

    def subject_naming(self, client: Any) -> SubjectNameResolver:
        return SubjectNameResolver(
            self.take("subject.name.strategy"),
            self.take("subject.name.strategy.type"),
            self.take("subject.name.strategy.conf"),
            client,
        )

    def reject_unknown(self) -> None:
        """Raises ValueError if a setting is left."""
        reject_unknown_settings(self._left, self._names)


@dataclass(slots=True, frozen=True)
class SchemaSelection:
    """Selects a registered schema of the subject, instead of the serializer's own."""

    schema_id: int | None
    metadata: dict[str, str] | None
    latest: bool

    @classmethod
    def take(cls, conf: SerdeConf, *, by_id: bool) -> Self:
        schema_id = conf.take("use.schema.id") if by_id else None
        if schema_id is not None and not isinstance(schema_id, int):
            raise ValueError(f"use.schema.id must be an int, not {schema_id!r}")
        metadata = conf.take("use.latest.with.metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise ValueError(f"use.latest.with.metadata must be a dict, not {metadata!r}")
        return cls(schema_id, metadata, conf.flag("use.latest.version", False))

    @property
    def is_configured(self) -> bool:
        return self.schema_id is not None or self.metadata is not None or self.latest

    def fetch(self, client: Any, subject: str, fmt: str | None) -> Any:
        """Returns the selected version."""
        if self.schema_id is not None:
            schema = client.get_schema(self.schema_id, subject, fmt)
            return client.lookup_schema(subject, schema, deleted=True)
        if self.metadata is not None:
            return client.get_latest_with_metadata(subject, self.metadata, deleted=True, fmt=fmt)
        return client.get_latest_version(subject, fmt)


class RegistrySerde:
    """Closes its client only if it owns it."""

    _registry: Any
    _selection: SchemaSelection
    _naming: SubjectNameResolver
    _owns_registry = False

    @property
    def follows_latest(self) -> bool:
        """Whether any call may request a schema from the registry."""
        return self._selection.is_configured

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        self._naming.set_cluster_id_resolver(resolver)

    def own_schema_registry_client(self) -> None:
        """Makes `close` close the client as well."""
        self._owns_registry = True

    def close(self) -> None:
        if self._owns_registry:
            self._registry.close()


def reject_rules(schema: Any, modes: tuple[str, ...], where: str | None) -> None:
    """Raises SerializationError if the schema has rules for one of these modes.

    Skipping a rule that encrypts would write a secret as plain text.
    """
    rule_set = getattr(schema, "rule_set", None)
    if rule_set is None:
        return
    for rules in (rule_set.migration_rules, rule_set.domain_rules, rule_set.encoding_rules):
        for rule in rules or ():
            if rule.mode in modes and not rule.disabled:
                raise SerializationError(
                    f"the schema of {where or 'these bytes'} has the rule {rule.name!r} "
                    f"({rule.type}), and rules are not executed here: use "
                    "confluent_kafka's serializers for this subject, or disable the rule"
                )


def as_schema(schema: Any, schema_type: str) -> Any:
    """Returns a Schema for a text. A Schema of this library or confluent_kafka stays as it is."""
    if schema is None or hasattr(schema, "schema_str"):
        return schema
    if not isinstance(schema, str):
        raise TypeError(f"a schema must be a str or a Schema, not {type(schema).__name__}")
    return Schema(schema, schema_type)
