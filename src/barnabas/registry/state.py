"""What the records of `_schemas` say: subjects and their versions, ids, configs, modes.

`apply` takes records in the order of the log and never fails: of a schema whose id has another
schema already, the first one stays. Everything that is looked up is found by a key, and costs
nothing to speak of with many subjects. Decisions may be made in a thread while records are
applied: what is gone through is copied first.
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
    """A schema of a context, and every version of a subject that it is."""

    id: int
    definition: SchemaDefinition
    versions_by_subject: dict[str, set[int]] = field(default_factory=dict)  # versions by subject


@dataclass(slots=True)
class SchemaContext:
    """The ids of one context."""

    name: str
    max_id: int = 0
    by_id: dict[int, SchemaEntry] = field(default_factory=dict)
    by_definition: dict[SchemaDefinition, dict[int, SchemaEntry]] = field(default_factory=dict)
    by_guid: dict[str, dict[int, SchemaEntry]] = field(default_factory=dict)


class RegistryState:
    """Who decides and who answers reads it; the log alone changes it."""

    def __init__(self) -> None:
        self.configs: dict[str | None, SubjectConfig] = {}
        self.modes: dict[str | None, RegistryMode] = {}
        self.contexts: dict[str, SchemaContext] = {DEFAULT_CONTEXT: SchemaContext(DEFAULT_CONTEXT)}
        self._subjects: dict[str, dict[int, SchemaValue]] = {}
        self._latest: dict[str, int] = {}  # the highest version, a deleted one too
        self._referrers: dict[SchemaKey, dict[SchemaKey, None]] = {}
        self._spent: dict[str, int] = {}  # by context, the highest id that a schema there has had

    # Versions

    def subjects(self) -> list[str]:
        """Every subject that has a version, be it a deleted one."""
        return list(self._subjects)

    def versions(self, subject: str, *, deleted: bool = False) -> list[SchemaValue]:
        """In ascending order; those that are softly deleted too if asked for."""
        found = sorted(self._subjects.get(subject, {}).items())
        return [value for _, value in found if deleted or not value.deleted]

    def has_versions(self, subject: str, *, deleted: bool = False) -> bool:
        found = list(self._subjects.get(subject, {}).values())
        return any(deleted or not each.deleted for each in found)

    def version(self, subject: str, version: int, *, deleted: bool = False) -> SchemaValue | None:
        found = self._subjects.get(subject, {}).get(version)
        return found if found is not None and (deleted or not found.deleted) else None

    def latest(self, subject: str, *, deleted: bool = False) -> SchemaValue | None:
        found = self._subjects.get(subject, {})
        top = found.get(self._latest.get(subject, 0))
        if top is not None and (deleted or not top.deleted):
            return top
        return next(reversed(self.versions(subject, deleted=deleted)), None)

    def next_version(self, subject: str) -> int:
        found = self._subjects.get(subject)
        return self._latest[subject] + 1 if found else 1

    # Ids

    def context_of(self, subject: str) -> SchemaContext:
        """The subject's; an empty one if nothing was registered there."""
        name = QualifiedSubject.parse(subject).context
        return self.contexts.get(name) or SchemaContext(name, self._spent.get(name, 0))

    @property
    def highest_deleted_ids(self) -> dict[str, int]:
        """The highest id of every context in which no schema has it any more."""
        found = [(name, id_, self.contexts.get(name)) for name, id_ in list(self._spent.items())]
        return {
            name: id_
            for name, id_, context in found
            if context is None or (id_ == context.max_id and id_ not in context.by_id)
        }

    def find_entry(self, subject: str, definition: SchemaDefinition) -> SchemaEntry | None:
        """What is known under this definition in the subject's context."""
        found = self.context_of(subject).by_definition.get(definition)
        return None if not found else next(iter(found.values()))

    def versions_with(self, subject: str, definition: SchemaDefinition) -> list[SchemaValue]:
        """Versions of a subject with exactly this definition, the earliest first."""
        found = self.context_of(subject).by_definition.get(definition, {})
        versions = [each.versions_by_subject.get(subject, ()) for each in list(found.values())]
        values = (self.version(subject, each, deleted=True) for each in sorted(chain(*versions)))
        return [each for each in values if each is not None]

    def referrers(self, key: SchemaKey, *, deleted: bool = False) -> list[SchemaValue]:
        """Versions that refer to one."""
        keys = list(self._referrers.get(key, ()))
        found = (self.version(each.subject, each.version, deleted=deleted) for each in keys)
        return [each for each in found if each is not None]

    # Scopes

    def effective_config(self, subject: str | None) -> SubjectConfig:
        """What holds for a subject: its own over everybody's, else its context's, else those."""
        default = SubjectConfig(compatibility_level=DEFAULT_LEVEL)
        own = self.configs.get(subject)
        if own is not None:
            return own.merged_over(self.configs.get(None)).merged_over(default)
        wider = (self.configs.get(scope) for scope in _scopes(subject))
        return next((found.merged_over(default) for found in wider if found is not None), default)

    def effective_mode(self, subject: str | None) -> RegistryMode:
        # An operator's stop for all goes over whatever a subject says.
        if self.modes.get(None) is RegistryMode.READONLY_OVERRIDE:
            return RegistryMode.READONLY_OVERRIDE
        for scope in _scopes(subject):
            if (found := self.modes.get(scope)) is not None:
                return found
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
                self._forget(context)
            case ContextKey(context), _:
                self._context(context)
            case _, HighestDeletedIds(by_context):
                for name, id_ in by_context.items():
                    self._spend(name, id_)
            case _, ClearSubjectValue():
                pass  # nothing is kept here besides what the records say

    def _put(self, key: SchemaKey, value: SchemaValue) -> None:
        context = self._context(QualifiedSubject.parse(key.subject).context)
        known = context.by_id.get(value.id)
        if known is not None and known.definition != value.definition:
            _log.error(
                "version %d of subject %s is left out: its id %d is that of another schema",
                key.version,
                key.subject,
                value.id,
            )
            return
        self._remove(key)
        context.max_id = max(context.max_id, value.id)
        known = context.by_id.get(value.id)
        if known is None:
            known = context.by_id[value.id] = SchemaEntry(value.id, value.definition)
        known.versions_by_subject.setdefault(key.subject, set()).add(key.version)
        context.by_definition.setdefault(value.definition, {})[value.id] = known
        context.by_guid.setdefault(value.definition.guid, {})[value.id] = known
        self._subjects.setdefault(key.subject, {})[key.version] = value
        self._latest[key.subject] = max(key.version, self._latest.get(key.subject, 0))
        for referred in _referred(value):
            self._referrers.setdefault(referred, {})[key] = None

    def _remove(self, key: SchemaKey) -> None:
        versions = self._subjects.get(key.subject, {})
        value = versions.pop(key.version, None)
        if value is None:
            return
        if not versions:
            del self._subjects[key.subject], self._latest[key.subject]
        elif key.version == self._latest[key.subject]:
            self._latest[key.subject] = max(versions)
        for referred in _referred(value):
            self._referrers[referred].pop(key, None)
        context = self._context(QualifiedSubject.parse(key.subject).context)
        known = context.by_id[value.id]
        known.versions_by_subject[key.subject].discard(key.version)
        if not known.versions_by_subject[key.subject]:
            del known.versions_by_subject[key.subject]
        if not known.versions_by_subject:
            del context.by_id[value.id]
            self._spend(context.name, value.id)
            _drop(context.by_definition, value.definition, value.id)
            _drop(context.by_guid, value.definition.guid, value.id)

    def _context(self, name: str) -> SchemaContext:
        found = self.contexts.get(name)
        if found is None:
            found = self.contexts[name] = SchemaContext(name, self._spent.get(name, 0))
        return found

    def _spend(self, context: str, id_: int) -> None:
        self._spent[context] = max(id_, self._spent.get(context, 0))
        if (found := self.contexts.get(context)) is not None:
            found.max_id = max(id_, found.max_id)

    def _forget(self, name: str) -> None:
        found = self.contexts.get(name)
        if found is not None and not found.by_id and name != DEFAULT_CONTEXT:
            del self.contexts[name]


def _scopes(subject: str | None) -> Iterator[str | None]:
    """Where to look for what holds for a subject, the narrowest first."""
    if subject is not None:
        yield subject
        yield QualifiedSubject.parse(subject).prefix or None
    else:
        yield None
    yield GLOBAL_SCOPE


def _referred(value: SchemaValue) -> Iterator[SchemaKey]:
    for each in value.definition.references:
        yield SchemaKey(qualify_reference(value.subject, each.subject), each.version)


def _drop(index: dict[K, dict[int, SchemaEntry]], key: K, id_: int) -> None:
    index[key].pop(id_, None)
    if not index[key]:
        del index[key]
