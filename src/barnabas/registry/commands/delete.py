"""Delete a version or a whole subject: softly, so that it can still be read; then for good."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.registry import errors
from barnabas.registry.commands import Decision
from barnabas.registry.naming import Subject
from barnabas.registry.records import (
    ConfigKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    ModeKey,
    Record,
    SchemaValue,
    noop,
)
from barnabas.registry.state import State
from barnabas.registry.versions import require_version


@dataclass(slots=True, frozen=True)
class DeleteVersion:
    subject: str
    version: int  # -1 for the latest
    permanent: bool = False


@dataclass(slots=True, frozen=True)
class DeleteSubject:
    subject: str
    permanent: bool = False


def decide_version(request: DeleteVersion, state: State) -> Decision[int]:
    subject = request.subject
    value = require_version(state, subject, request.version, deleted=True)
    if value.deleted and not request.permanent:
        raise errors.version_soft_deleted(subject, value.version)
    require_writable(state, subject)
    if state.referrers(value.key, deleted=request.permanent):
        raise errors.referenced(value.key)
    if not request.permanent:
        return Decision(value.version, (Record(value.key, value.as_deleted()),))
    if not value.deleted:
        raise errors.version_not_soft_deleted(subject, value.version)
    records = gone_for_good([value], state)
    if len(state.versions(subject, deleted=True)) == 1:
        records += _settings_of(subject, state)
    return Decision(value.version, tuple(records))


def decide_subject(request: DeleteSubject, state: State) -> Decision[list[int]]:
    subject, permanent = request.subject, request.permanent
    if not state.has(subject, deleted=True):
        raise errors.subject_not_found(subject)
    if not permanent and not state.has(subject):
        raise errors.subject_soft_deleted(subject)
    require_writable(state, subject)
    values = state.versions(subject, deleted=permanent)
    for value in values:
        others = state.referrers(value.key, deleted=permanent)
        if any(each.subject != subject for each in others):
            raise errors.referenced(value.key)
        if permanent and not value.deleted:
            raise errors.subject_not_soft_deleted(subject)
    versions = [value.version for value in values]
    if not permanent:
        last = DeleteSubjectValue(subject, versions[-1])
        return Decision(versions, (Record(DeleteSubjectKey(subject), last),))
    # The newest first: versions may refer to earlier ones of their own subject.
    gone = gone_for_good(values[::-1], state)
    return Decision(versions, (*gone, *_settings_of(subject, state)))


def gone_for_good(values: Sequence[SchemaValue], state: State) -> list[Record]:
    """Tombstones of versions; and what their highest id was, lest it is given again."""
    spent = state.spent_ids
    for value in values:
        context = state.context_of(value.subject)
        if value.id == context.max_id:
            spent[context.name] = value.id
    told = [] if spent == state.spent_ids else [noop(spent)]
    return [*(Record(value.key) for value in values), *told]


def require_writable(state: State, subject: str | None) -> None:
    """RegistryError 42205 in a read-only mode."""
    if state.mode(subject).is_read_only:
        context = Subject.parse(subject or "").prefix
        raise errors.not_permitted(f"Subject {subject} in context {context} is in read-only mode")


def _settings_of(subject: str, state: State) -> list[Record]:
    records = []
    if subject in state.modes:
        records.append(Record(ModeKey(subject)))
    if subject in state.configs:
        records.append(Record(ConfigKey(subject)))
    return records
