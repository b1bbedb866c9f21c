"""Constructors: a keyword for each field, with its declared default."""

from __future__ import annotations

from barnabas.wire.codec.defaults import default_expression, is_fresh_each_time
from barnabas.wire.codec.layout import layout
from barnabas.wire.codec.source import Source
from barnabas.wire.schema import Struct


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
