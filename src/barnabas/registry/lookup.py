"""Find the version of a subject that a schema is registered as."""

from dataclasses import replace
from typing import Protocol, Self, TypeVar

from barnabas.registry.config import Config
from barnabas.registry.documents import Definition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import SchemaValue
from barnabas.registry.schemas import canonical, parsed_version
from barnabas.registry.state import State


def looked_up(
    state: State, subject: str, definition: Definition, *, normalize: bool, deleted: bool
) -> SchemaValue | None:
    """Exactly so, or with the metadata and rules that it would be given when it is registered."""
    found = found_as(state, subject, definition, normalize=normalize, deleted=deleted)
    if found is not None:
        return found
    full = populated(definition, state.config(subject), state.latest(subject))
    if full == definition:
        return None
    return found_as(state, subject, full, normalize=normalize, deleted=deleted)


def found_as(
    state: State,
    subject: str,
    definition: Definition,
    *,
    normalize: bool,
    deleted: bool = False,
) -> SchemaValue | None:
    """The newest version with this very definition."""
    known = canonical(state, subject, definition, normalize=normalize)
    versions = [each for each in state.under(subject, known) if deleted or not each.deleted]
    return versions[-1] if versions else _found_resolved(state, subject, known, deleted=deleted)


def _found_resolved(
    state: State, subject: str, known: Definition, *, deleted: bool
) -> SchemaValue | None:
    """The newest version that is this with what it refers to in it, as compiled classes have it."""
    if known.references:
        return None
    for version in reversed(state.versions(subject, deleted=deleted)):
        if version.definition.references and _resolved(state, version) == known:
            return version
    return None


def _resolved(state: State, version: SchemaValue) -> Definition | None:
    """None where it cannot be read: another registry may have stored it."""
    try:
        text = parsed_version(state, version).resolved
    except RegistryError:
        return None
    return replace(version.definition, references=(), schema=text)


def populated(definition: Definition, config: Config, previous: SchemaValue | None) -> Definition:
    """With what the latest version says of itself, if this one does not; and the config's.

    Defaults are weaker than what is said, overrides are stronger.
    """
    metadata, rules = definition.metadata, definition.rule_set
    if previous is not None:
        metadata = metadata or previous.definition.metadata
        rules = rules or previous.definition.rule_set
    return replace(
        definition,
        metadata=_layered(config.default_metadata, metadata, config.override_metadata),
        rule_set=_layered(config.default_rule_set, rules, config.override_rule_set),
    )


class _Layer(Protocol):
    def over(self, weaker: Self | None) -> Self: ...


L = TypeVar("L", bound=_Layer)


def _layered(*weakest_first: L | None) -> L | None:
    merged: L | None = None
    for each in weakest_first:
        merged = merged if each is None else each.over(merged)
    return merged
