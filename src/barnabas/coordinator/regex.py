"""Regular expressions that clients send: topics to subscribe to, transactions to list.

The syntax is RE2's, as Kafka's is. It has no backreferences and no lookaround, so that a match
takes time proportional to the lengths of the name and the pattern, whatever the pattern is. The
whole name must match.

The library is loaded with the first pattern: a broker that gets none does not pay for it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.wire.errors import ErrorCode, KafkaError

SLICE_STEPS = 250_000
"""About a millisecond of a pattern that was made to be slow."""


def check(pattern: str, field: str) -> None:
    """Raises KafkaError if the pattern, which a request has in `field`, is not valid."""
    _compile(pattern, field)


def search(pattern: str, names: Iterable[str]) -> Iterator[list[str]]:
    """Yields the names that match, in slices that leave the event loop free in between."""
    compiled = _compile(pattern, "pattern")
    program_size = compiled.programsize
    matches: list[str] = []
    steps = 0
    for name in names:
        if compiled.fullmatch(name) is not None:
            matches.append(name)
        steps += len(name) * program_size
        if steps >= SLICE_STEPS:
            yield matches
            matches, steps = [], 0
    yield matches


def _compile(pattern: str, field: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # several times faster
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"{field} `{pattern}` is not a valid regular expression: {reason}.",
        ) from error
    finally:
        re2.purge()  # its cache would keep megabytes without a bound
