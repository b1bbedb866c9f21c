"""Deletes versions, subjects and contexts: softly first (still readable), then permanently."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.decision import Decision
from barnabas.registry import errors
from barnabas.registry.commands import RegistryDecision
from barnabas.registry.lookup import require_version
from barnabas.registry.records import (
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    ModeKey,
    RegistryRecord,
    SchemaValue,
    noop_record,
)
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import QualifiedSubject


@dataclass(slots=True, frozen=True)
class DeleteVersion:
    subject: str
    version: int  # -1 for the latest
    permanent: bool = False


@dataclass(slots=True, frozen=True)
class DeleteSubject:
    subject: str
    permanent: bool = False


def decide_version(request: DeleteVersion, state: RegistryState) -> RegistryDecision[int]:
    subject = request.subject
    value = require_version(state, subject, request.version, deleted=True)
    if value.deleted and not request.permanent:
        raise errors.version_soft_deleted(subject, value.version)
    require_writable(state, subject)
    if state.referrers(value.key, deleted=request.permanent):
        raise errors.referenced(value.key)
    if not request.permanent:
        return Decision((RegistryRecord(value.key, value.as_soft_deleted()),), value.version)
    if not value.deleted:
        raise errors.version_not_soft_deleted(subject, value.version)
    records = tombstones([value], state)
    if len(state.versions(subject, deleted=True)) == 1:
        records += _setting_tombstones(subject, state)
    return Decision(tuple(records), value.version)


def decide_subject(request: DeleteSubject, state: RegistryState) -> RegistryDecision[list[int]]:
    subject, permanent = request.subject, request.permanent
    if not state.has_versions(subject, deleted=True):
        raise errors.subject_not_found(subject)
    if not permanent and not state.has_versions(subject):
        raise errors.subject_soft_deleted(subject)
    require_writable(state, subject)
    values = state.versions(subject, deleted=permanent)
    for value in values:
        referrers = state.referrers(value.key, deleted=permanent)
        if any(referrer.subject != subject for referrer in referrers):
            raise errors.referenced(value.key)
        if permanent and not value.deleted:
            raise errors.subject_not_soft_deleted(subject)
    versions = [value.version for value in values]
    if not permanent:
        last = DeleteSubjectValue(subject, versions[-1])
        return Decision((RegistryRecord(DeleteSubjectKey(subject), last),), versions)
    # The newest first, because versions may refer to earlier ones of their own subject.
    removed = tombstones(values[::-1], state)
    return Decision((*removed, *_setting_tombstones(subject, state)), versions)


def tombstones(values: Sequence[SchemaValue], state: RegistryState) -> list[RegistryRecord]:
    """Returns tombstones of versions, and a NOOP that keeps their highest id from being reused."""
    deleted_ids = state.highest_deleted_ids
    for value in values:
        context = state.context_of(value.subject)
        if value.id == context.max_id:
            deleted_ids[context.name] = value.id
    noops = [] if deleted_ids == state.highest_deleted_ids else [noop_record(deleted_ids)]
    return [*(RegistryRecord(value.key) for value in values), *noops]


def require_writable(state: RegistryState, subject: str | None) -> None:
    """Raises RegistryError 42205 in a read-only mode."""
    if state.effective_mode(subject).is_read_only:
        context = QualifiedSubject.parse(subject or "").prefix
        raise errors.not_permitted(f"Subject {subject} in context {context} is in read-only mode")


def _setting_tombstones(subject: str, state: RegistryState) -> list[RegistryRecord]:
    records = []
    if subject in state.modes:
        records.append(RegistryRecord(ModeKey(subject)))
    if subject in state.configs:
        records.append(RegistryRecord(ConfigKey(subject)))
    return records


@dataclass(slots=True, frozen=True)
class RemoveContext:
    name: str


def decide_context(request: RemoveContext, state: RegistryState) -> RegistryDecision[None]:
    context = state.contexts.get(request.name)
    if context is None:
        return Decision((), None)
    if context.by_id:
        raise errors.context_not_empty(request.name)
    return Decision((RegistryRecord(ContextKey(request.name)),), None)
