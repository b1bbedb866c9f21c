"""Constructors, with a keyword for each field, and the default values of fields."""

from __future__ import annotations

from typing import NoReturn, cast

from barnabas.wire.codec.layout import FieldLayout, layout
from barnabas.wire.codec.source import Source
from barnabas.wire.schema import Struct, StructType


def compile_constructor(struct: type[Struct]) -> None:
    """Replaces the `__init__` of a struct by a compiled one."""
    source = Source(UNSET=object())
    parameters, assignments = [], []
    for field in layout(struct):
        name = field.name
        default = default_expression(source, field)
        if is_fresh_each_time(field):
            parameters.append(f"{name}=UNSET")
            assignments.append(f"self.{name} = {default} if {name} is UNSET else {name}")
        else:
            parameters.append(f"{name}={default}")
            assignments.append(f"self.{name} = {name}")
    keywords_only = ["*"] if parameters else []
    with source.block(f"def __init__({', '.join(['self', *keywords_only, *parameters])}):"):
        for assignment in assignments:
            source.add(assignment)
        source.add("self.unknown_tags = None")
    struct.__init__ = source.compile("__init__", f"{struct.__name__}.__init__")  # type: ignore[method-assign]


def default_expression(source: Source, field: FieldLayout) -> str:
    """Returns the Python expression of the default: a shared value, or a new one (see below)."""
    if field.defaults_to_empty:
        return "[]"
    if field.defaults_to_struct:
        assert isinstance(field.scalar, type)
        shared = shared_default(field.scalar)
        if shared is None:
            return source.constant(field.scalar.__name__, field.scalar) + "()"
        return source.constant(f"DEFAULT_{field.scalar.__name__}", shared)
    return repr(field.default)


def is_fresh_each_time(field: FieldLayout) -> bool:
    """Whether the default is mutable, so that each message needs its own."""
    return field.defaults_to_empty or (
        field.defaults_to_struct
        and isinstance(field.scalar, type)
        and shared_default(field.scalar) is None
    )


def shared_default(struct: type[Struct]) -> Struct | None:
    """Returns one immutable instance for all fields that default to this struct.

    A partition of a Fetch response has three such fields, nearly always unset: building them
    would cost more than the rest of it. Returns None for a struct with mutable fields.
    """
    if struct not in _shared:
        fresh = any(is_fresh_each_time(field) for field in layout(struct))
        _shared[struct] = None if fresh else _unchangeable(struct)
    return _shared[struct]


_shared: dict[type[Struct], Struct | None] = {}


def _unchangeable(struct: type[Struct]) -> Struct:
    frozen = StructType(
        struct.__name__, (struct,), {"__slots__": (), "__setattr__": _refuse_change}
    )
    default = object.__new__(cast("type[Struct]", frozen))
    given = struct()
    for name in ("unknown_tags", *struct.DECLARED):
        object.__setattr__(default, name, getattr(given, name))
    return default


def _refuse_change(struct: Struct, name: str, _: object) -> NoReturn:
    raise AttributeError(
        f"this {type(struct).__name__} is the default that many messages share: "
        f"assign a new one instead of setting its {name}"
    )
