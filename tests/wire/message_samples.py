"""Messages for tests: with random values, or with one value in every field."""

import random
from typing import Any, TypeVar

from hypothesis import strategies as st

from barnabas.wire.codec.layout import FieldLayout, Fixed, Sized, layout
from barnabas.wire.schema import Message, Struct

M = TypeVar("M", bound=Message)

LIMITS = {
    "b": (-(2**7), 2**7 - 1),
    "h": (-(2**15), 2**15 - 1),
    "H": (0, 2**16 - 1),
    "i": (-(2**31), 2**31 - 1),
    "I": (0, 2**32 - 1),
    "q": (-(2**63), 2**63 - 1),
}


def messages_of_version(message: type[M], version: int) -> st.SearchStrategy[M]:
    """Returns messages of a version with random values; fields of other versions have the default.

    Hypothesis draws a seed and not each value, because a message has more fields than it allows
    choices.
    """
    return st.builds(
        lambda source: fill(message, version, source, unknown_tags=is_flexible(message, version)),
        st.randoms(use_true_random=True),
    )


def sample(message: type[M], version: int, *, seed: int = 0) -> M:
    """Returns a message with every field set, one element in every list, and small numbers."""
    filled: M = fill(message, version, random.Random(seed), plain=True)
    return filled


def is_flexible(message: type[Message], version: int) -> bool:
    return message.FLEXIBLE_FROM is not None and version >= message.FLEXIBLE_FROM


def fill(
    struct: Any,
    version: int,
    source: random.Random,
    *,
    plain: bool = False,
    unknown_tags: bool = False,
) -> Any:
    """Returns a struct with values in the fields of the version, and defaults in others."""
    filled = struct(
        **{
            field.name: _value(field, version, source, plain, unknown_tags)
            for field in layout(struct)
            if version in field.versions and (plain or source.random() < 0.9)
        }
    )
    if unknown_tags and source.random() < 0.2:
        tags = {source.randint(100, 2**31 - 1): source.randbytes(3) for _ in range(2)}
        filled.unknown_tags = tags
    return filled


def _value(
    field: FieldLayout, version: int, source: random.Random, plain: bool, unknown_tags: bool
) -> Any:
    if field.is_nullable(version) and not plain and source.random() < 0.3:
        return None
    if not field.is_array:
        return _scalar(field.scalar, version, source, plain, unknown_tags)
    count = 1 if plain else source.choice((0, 1, 2, 3))
    return [_scalar(field.scalar, version, source, plain, unknown_tags) for _ in range(count)]


def _scalar(
    kind: Fixed | Sized | type[Struct],
    version: int,
    source: random.Random,
    plain: bool,
    unknown_tags: bool,
) -> Any:
    if isinstance(kind, Sized):
        length = source.choice((0, 1, 5, 126, 127, 128, 300)) if not plain else 7
        if kind.is_text:
            return "".join(source.choice("abcdefgh-.żß€😀") for _ in range(length))
        return source.randbytes(length)
    if isinstance(kind, Fixed):
        return _fixed(kind.code, source, plain)
    return fill(kind, version, source, plain=plain, unknown_tags=unknown_tags)


def _fixed(code: str, source: random.Random, plain: bool) -> Any:
    if code == "?":
        return source.random() < 0.5
    if code == "d":
        return source.uniform(-1e9, 1e9)
    if code == "16s":
        return source.randbytes(16)
    if plain:
        return source.randint(1, 100)
    lowest, highest = LIMITS[code]
    return source.choice((lowest, highest, 0, -1 if lowest else 1, source.randint(lowest, highest)))
