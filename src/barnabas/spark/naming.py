"""Options by their names, as Spark gives them: in lower case, whatever the user wrote."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

PASSED_ON = "kafka."
"""How options for the client begin."""

REGISTRY = "schema.registry."
"""How options for the registry's client begin."""


class OptionError(ValueError):
    """An option that is unknown, missing, or does not have a value it may have."""


def require_known(
    given: Iterable[str],
    known: Collection[str],
    *,
    purpose: str,
    prefixes: tuple[str, ...] = (PASSED_ON, REGISTRY),
) -> None:
    """OptionError for the first that is not known, with the name that was probably meant."""
    by_lower = {name.lower(): name for name in known}
    for name in given:
        if name.lower() in by_lower or name.lower().startswith(prefixes):
            continue
        near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
        advice = f" Did you mean {by_lower[near[0]]!r}?" if near else ""
        raise OptionError(f"{name!r} is not an option of {purpose}.{advice}")
