"""The settings of serializers and deserializers, checked as they are taken."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from barnabas.schema_registry.client.settings import refuse_unknown
from barnabas.schema_registry.serdes.subjects import SubjectNaming


class SerdeConf:
    """Settings of which each is taken once, by name; what is left at the end is unknown."""

    def __init__(self, conf: Mapping[str, Any] | None) -> None:
        self._left = dict(conf or {})
        self._known: list[str] = []

    def take(self, name: str, otherwise: Any = None) -> Any:
        self._known.append(name)
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

    def naming(self, client: Any) -> SubjectNaming:
        return SubjectNaming(
            self.take("subject.name.strategy"),
            self.take("subject.name.strategy.type"),
            self.take("subject.name.strategy.conf"),
            client,
        )

    def finish(self) -> None:
        """ValueError if something is left."""
        refuse_unknown(self._left, self._known)


@dataclass(slots=True, frozen=True)
class SchemaChoice:
    """Which of a subject's schemas is used where it is not the serializer's own."""

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
    def is_made(self) -> bool:
        return self.schema_id is not None or self.metadata is not None or self.latest

    def of(self, client: Any, subject: str, fmt: str | None) -> Any:
        """The registered schema that is chosen."""
        if self.schema_id is not None:
            schema = client.get_schema(self.schema_id, subject, fmt)
            return client.lookup_schema(subject, schema, deleted=True)
        if self.metadata is not None:
            return client.get_latest_with_metadata(subject, self.metadata, deleted=True, fmt=fmt)
        return client.get_latest_version(subject, fmt)
