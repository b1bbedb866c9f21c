"""Libraries that come with an extra: one line about how to have them, where they are missing."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Around imports: a missing library is told with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("barnabas"):
            raise
        raise ImportError(
            f"{what} needs {missing.name}: pip install 'barnabas[registry]'"
        ) from None
