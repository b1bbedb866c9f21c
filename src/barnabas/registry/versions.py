"""Which version of a subject a request means."""

from barnabas.registry import errors
from barnabas.registry.records import SchemaValue
from barnabas.registry.state import State

LATEST = -1


def read_version(text: str) -> int:
    """A number, or -1 for the latest; RegistryError 42202 for anything else."""
    if text == "latest":
        return LATEST
    try:
        version = int(text)
    except ValueError:
        raise errors.invalid_version(text) from None
    if "_" in text or (version != LATEST and not 1 <= version <= 2**31 - 1):
        raise errors.invalid_version(text)
    return version


def find_version(
    state: State, subject: str, version: int, *, deleted: bool = False
) -> SchemaValue | None:
    """The latest is never one that is deleted."""
    if version == LATEST:
        return state.latest(subject)
    return state.version(subject, version, deleted=deleted)


def require_version(
    state: State, subject: str, version: int, *, deleted: bool = False
) -> SchemaValue:
    """RegistryError 40401 or 40402 if there is none."""
    if (found := find_version(state, subject, version, deleted=deleted)) is not None:
        return found
    if not state.has(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.version_not_found(version)
