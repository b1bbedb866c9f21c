"""The state that the records of `_schemas` build: subjects, versions, ids, configs, modes.

`apply` takes records in log order and never fails: if two schemas have one id, the first stays.
Every lookup is by key, so its cost does not grow with the number of subjects. Decisions may run on
a thread while records are applied, so collections are copied before they are iterated.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from barnabas.registry.config import DEFAULT_LEVEL, SubjectConfig
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.records import (
    ClearSubjectValue,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DeleteSubjectValue,
    HighestDeletedIds,
    ModeKey,
    ModeValue,
    RegistryMode,
    RegistryRecord,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.subjects import (
    DEFAULT_CONTEXT,
    GLOBAL_SCOPE,
    QualifiedSubject,
    qualify_reference,
)

K = TypeVar("K")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SchemaEntry:
    """A schema of a context, with the versions of subjects that have it."""

    id: int
    definition: SchemaDefinition
    versions_by_subject: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class SchemaContext:
    """The schemas of one context by id, definition and guid."""

    name: str
    max_id: int = 0
    by_id: dict[int, SchemaEntry] = field(default_factory=dict)
    by_definition: dict[SchemaDefinition, dict[int, SchemaEntry]] = field(default_factory=dict)
    by_guid: dict[str, dict[int, SchemaEntry]] = field(default_factory=dict)


class RegistryState:
    """Read by deciders and request handlers. Only the log changes it."""

    def __init__(self) -> None:
        self.configs: dict[str | None, SubjectConfig] = {}
        self.modes: dict[str | None, RegistryMode] = {}
        self.contexts: dict[str, SchemaContext] = {DEFAULT_CONTEXT: SchemaContext(DEFAULT_CONTEXT)}
        self._subjects: dict[str, dict[int, SchemaValue]] = {}
        self._latest: dict[str, int] = {}  # the highest version, deleted or not
        self._referrers: dict[SchemaKey, dict[SchemaKey, None]] = {}
        self._highest_deleted: dict[str, int] = {}  # by context, ids that no schema has any more

    # Versions

    def subjects(self) -> list[str]:
        """Returns every subject that has a version, soft-deleted or not."""
        return list(self._subjects)

    def versions(self, subject: str, *, deleted: bool = False) -> list[SchemaValue]:
        """Returns versions in ascending order, with soft-deleted ones if `deleted`."""
        versions = sorted(self._subjects.get(subject, {}).items())
        return [value for _, value in versions if deleted or not value.deleted]

    def has_versions(self, subject: str, *, deleted: bool = False) -> bool:
        values = list(self._subjects.get(subject, {}).values())
        return any(deleted or not value.deleted for value in values)

    def version(self, subject: str, version: int, *, deleted: bool = False) -> SchemaValue | None:
        value = self._subjects.get(subject, {}).get(version)
        return value if value is not None and (deleted or not value.deleted) else None

    def latest(self, subject: str, *, deleted: bool = False) -> SchemaValue | None:
        versions = self._subjects.get(subject, {})
        highest = versions.get(self._latest.get(subject, 0))
        if highest is not None and (deleted or not highest.deleted):
            return highest
        return next(reversed(self.versions(subject, deleted=deleted)), None)

    def next_version(self, subject: str) -> int:
        versions = self._subjects.get(subject)
        return self._latest[subject] + 1 if versions else 1

    # Ids

    def context_of(self, subject: str) -> SchemaContext:
        """Returns the subject's context, or an empty one if nothing was registered in it."""
        name = QualifiedSubject.parse(subject).context
        return self.contexts.get(name) or SchemaContext(name, self._highest_deleted.get(name, 0))

    @property
    def highest_deleted_ids(self) -> dict[str, int]:
        """The highest id of every context whose highest id belonged to a deleted schema."""
        ids = [
            (name, id_, self.contexts.get(name))
            for name, id_ in list(self._highest_deleted.items())
        ]
        return {
            name: id_
            for name, id_, context in ids
            if context is None or (id_ == context.max_id and id_ not in context.by_id)
        }

    def find_entry(self, subject: str, definition: SchemaDefinition) -> SchemaEntry | None:
        """Returns the schema with this definition in the subject's context."""
        entries = self.context_of(subject).by_definition.get(definition)
        return None if not entries else next(iter(entries.values()))

    def versions_with(self, subject: str, definition: SchemaDefinition) -> list[SchemaValue]:
        """Returns the versions of a subject with exactly this definition, the earliest first."""
        entries = self.context_of(subject).by_definition.get(definition, {})
        numbers = chain.from_iterable(
            entry.versions_by_subject.get(subject, ()) for entry in list(entries.values())
        )
        values = (self.version(subject, number, deleted=True) for number in sorted(numbers))
        return [value for value in values if value is not None]

    def referrers(self, key: SchemaKey, *, deleted: bool = False) -> list[SchemaValue]:
        """Returns the versions that refer to a version."""
        keys = list(self._referrers.get(key, ()))
        values = (self.version(item.subject, item.version, deleted=deleted) for item in keys)
        return [value for value in values if value is not None]

    # Scopes

    def effective_config(self, subject: str | None) -> SubjectConfig:
        """Returns the subject's config merged over the global one, or else its context's config."""
        default = SubjectConfig(compatibility_level=DEFAULT_LEVEL)
        own = self.configs.get(subject)
        if own is not None:
            return own.merged_over(self.configs.get(None)).merged_over(default)
        wider = (self.configs.get(scope) for scope in _scopes(subject))
        return next(
            (config.merged_over(default) for config in wider if config is not None), default
        )

    def effective_mode(self, subject: str | None) -> RegistryMode:
        # An operator's global READONLY_OVERRIDE has precedence over the modes of subjects.
        if self.modes.get(None) is RegistryMode.READONLY_OVERRIDE:
            return RegistryMode.READONLY_OVERRIDE
        for scope in _scopes(subject):
            if (mode := self.modes.get(scope)) is not None:
                return mode
        return RegistryMode.READWRITE

    # Replay

    def apply(self, record: RegistryRecord) -> None:
        match record.key, record.value:
            case SchemaKey() as key, SchemaValue() as value:
                self._put(key, value)
            case SchemaKey() as key, None:
                self._remove(key)
            case _, DeleteSubjectValue(subject, version):
                for value in self.versions(subject):
                    if value.version <= version:
                        self._subjects[subject][value.version] = value.as_soft_deleted()
            case ConfigKey(subject), ConfigValue(_, config):
                self.configs[subject] = config
            case ConfigKey(subject), None:
                self.configs.pop(subject, None)
            case ModeKey(subject), ModeValue(_, mode):
                self.modes[subject] = mode
            case ModeKey(subject), None:
                self.modes.pop(subject, None)
            case ContextKey(context), None:
                self._remove_context(context)
            case ContextKey(context), _:
                self._get_or_create_context(context)
            case _, HighestDeletedIds(by_context):
                for name, id_ in by_context.items():
                    self._note_deleted_id(name, id_)
            case _, ClearSubjectValue():
                pass  # the state has no caches

    def _put(self, key: SchemaKey, value: SchemaValue) -> None:
        context = self._get_or_create_context(QualifiedSubject.parse(key.subject).context)
        entry = context.by_id.get(value.id)
        if entry is not None and entry.definition != value.definition:
            _log.error(
                "ignored version %d of subject %s: its id %d belongs to another schema",
                key.version,
                key.subject,
                value.id,
            )
            return
        self._remove(key)
        context.max_id = max(context.max_id, value.id)
        entry = context.by_id.get(value.id)
        if entry is None:
            entry = context.by_id[value.id] = SchemaEntry(value.id, value.definition)
        entry.versions_by_subject.setdefault(key.subject, set()).add(key.version)
        context.by_definition.setdefault(value.definition, {})[value.id] = entry
        context.by_guid.setdefault(value.definition.guid, {})[value.id] = entry
        self._subjects.setdefault(key.subject, {})[key.version] = value
        self._latest[key.subject] = max(key.version, self._latest.get(key.subject, 0))
        for referenced in _referenced_keys(value):
            self._referrers.setdefault(referenced, {})[key] = None

    def _remove(self, key: SchemaKey) -> None:
        versions = self._subjects.get(key.subject, {})
        value = versions.pop(key.version, None)
        if value is None:
            return
        if not versions:
            del self._subjects[key.subject], self._latest[key.subject]
        elif key.version == self._latest[key.subject]:
            self._latest[key.subject] = max(versions)
        for referenced in _referenced_keys(value):
            self._referrers[referenced].pop(key, None)
        context = self._get_or_create_context(QualifiedSubject.parse(key.subject).context)
        entry = context.by_id[value.id]
        entry.versions_by_subject[key.subject].discard(key.version)
        if not entry.versions_by_subject[key.subject]:
            del entry.versions_by_subject[key.subject]
        if not entry.versions_by_subject:
            del context.by_id[value.id]
            self._note_deleted_id(context.name, value.id)
            _remove_from_index(context.by_definition, value.definition, value.id)
            _remove_from_index(context.by_guid, value.definition.guid, value.id)

    def _get_or_create_context(self, name: str) -> SchemaContext:
        context = self.contexts.get(name)
        if context is None:
            context = self.contexts[name] = SchemaContext(name, self._highest_deleted.get(name, 0))
        return context

    def _note_deleted_id(self, name: str, id_: int) -> None:
        self._highest_deleted[name] = max(id_, self._highest_deleted.get(name, 0))
        if (context := self.contexts.get(name)) is not None:
            context.max_id = max(id_, context.max_id)

    def _remove_context(self, name: str) -> None:
        context = self.contexts.get(name)
        if context is not None and not context.by_id and name != DEFAULT_CONTEXT:
            del self.contexts[name]


def _scopes(subject: str | None) -> Iterator[str | None]:
    """Yields the scopes that apply to a subject, the narrowest first."""
    if subject is not None:
        yield subject
        yield QualifiedSubject.parse(subject).prefix or None
    else:
        yield None
    yield GLOBAL_SCOPE


def _referenced_keys(value: SchemaValue) -> Iterator[SchemaKey]:
    for reference in value.definition.references:
        yield SchemaKey(qualify_reference(value.subject, reference.subject), reference.version)


def _remove_from_index(index: dict[K, dict[int, SchemaEntry]], key: K, id_: int) -> None:
    index[key].pop(id_, None)
    if not index[key]:
        del index[key]
