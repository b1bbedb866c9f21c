"""Regular expressions that clients send: topics to subscribe to, transactions to list.

The syntax is RE2's, as Kafka's is: there are no backreferences and no looking around, so that a
match takes time in proportion to the name and to the pattern, however it was made up. A name
matches as a whole.

The library is loaded with the first pattern: a broker that is sent none does not pay for it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.wire.errors import ErrorCode, KafkaError

SLICE_STEPS = 250_000
"""About a millisecond's worth of a pattern that was made to be slow."""


def check(pattern: str) -> None:
    """KafkaError unless the pattern can be used."""
    _compile(pattern)


def search(pattern: str, names: Iterable[str]) -> Iterator[list[str]]:
    """The names that match, in slices that leave the loop free between them."""
    compiled = _compile(pattern)
    program_size = compiled.programsize
    found: list[str] = []
    steps = 0
    for name in names:
        if compiled.fullmatch(name) is not None:
            found.append(name)
        steps += len(name) * program_size
        if steps >= SLICE_STEPS:
            yield found
            found, steps = [], 0
    yield found


def _compile(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # nobody asks where: that is several times faster
    try:
        return re2.compile(pattern, options)
    except re2.error as refusal:
        reason = refusal.args[0].decode(errors="replace")
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"`{pattern}` is not a valid regular expression: {reason}.",
        ) from refusal
    finally:
        re2.purge()  # its cache would hold on to megabytes for as long as it likes
