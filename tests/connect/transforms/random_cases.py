"""Random structs and maps, and random settings that mostly fit them."""

import random
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from tests.connect.transforms.cases import (
    TOMBSTONE,
    TYPES,
    Case,
    Record,
    free,
    logical,
    of,
    struct,
    typed,
)

NAMES = ("a", "b", "c", "d.e", "f")
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 54}
"""The largest numbers would be dates that Java's calendar does not have."""
PATTERNS = ("yyyy-MM-dd", "yyyyMMddHHmmss", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "d MMM yy h:mm a")


def random_cases(seed: int, count: int) -> list[Case]:
    source = random.Random(seed)
    return [random_case(source, number) for number in range(count)]


def random_case(source: random.Random, number: int) -> Case:
    if source.random() < 0.3:
        payloads = random_maps(source)
        records = free(*payloads)
    else:
        schema = random_struct(source, 2)
        payloads = [random_value(source, schema) for _ in range(source.randrange(1, 6))]
        records = typed(schema, *payloads)
    if source.random() < 0.3:
        records.insert(source.randrange(len(records) + 1), typed(None, TOMBSTONE)[0])
    kind = source.choice(tuple(SETTINGS))
    is_plain = kind in ("ValueToKey", "RegexRouter", "TimestampRouter")
    part = "" if is_plain else source.choice(("$Key", "$Value"))
    if part == "$Key":
        records = [Record(key=each.value, offset=row) for row, each in enumerate(records)]
    settings = SETTINGS[kind](source)
    if kind not in NEVER_DEFAULT and source.random() < 0.3:
        settings["replace.null.with.default"] = "false"
    return Case(f"{number}", f"{kind}{part}", settings, records, source.random() < 0.5)


def random_struct(source: random.Random, depth: int) -> dict[str, Any]:
    names = source.sample(NAMES, source.randrange(1, len(NAMES)))
    more = {"name": "n", "version": 2, "doc": "d"} if source.random() < 0.3 else {}
    return struct({name: random_schema(source, depth) for name in names}, **more)


def random_schema(source: random.Random, depth: int) -> dict[str, Any]:
    optional = source.random() < 0.5
    kind = source.choice(
        ("string", "boolean", "float", "double", "bytes", "array", "logical", *BITS)
        + (("struct", "struct") if depth else ())
    )
    match kind:
        case "struct":
            return {**random_struct(source, depth - 1), "optional": optional}
        case "array":
            return of("array", optional=optional, items=of("int32"))
        case "logical":
            return logical(source.choice(("Date", "Time", "Timestamp")), optional=optional)
    schema = of(kind, optional=optional)
    if optional and source.random() < 0.4 and kind != "bytes":
        schema["default"] = random_value(source, {**schema, "optional": False})
    return schema


def random_value(source: random.Random, schema: dict[str, Any]) -> Any:
    if schema["optional"] and source.random() < 0.3:
        return None
    name = schema.get("name", "").rpartition(".")[2]
    match schema["type"], name:
        case _, "Date":
            return source.randrange(-1000, 40000)
        case _, "Time":
            return source.randrange(86_400_000)
        case _, "Timestamp":
            return source.randrange(-(10**12), 10**13)
        case (("int8" | "int16" | "int32" | "int64"), _):
            limit = 1 << (BITS[schema["type"]] - 1)
            return source.choice((0, 1, -limit, limit - 1, source.randrange(-limit, limit)))
        case "string", _:
            return source.choice(
                ("", "x", "12", "-7", "1.5", "true", "2020-02-30", "20240102030405")
            )
        case "boolean", _:
            return source.random() < 0.5
        case (("float" | "double"), _):
            return source.choice((0.0, 0.5, -1.5, 300.25, round(source.uniform(-1e6, 1e6), 1)))
        case "bytes", _:
            return b64encode(source.randbytes(source.randrange(4))).decode()
        case "array", _:
            return [source.randrange(9) for _ in range(source.randrange(3))]
        case _:
            return {field["field"]: random_value(source, field) for field in schema["fields"]}


def random_maps(source: random.Random) -> list[Any]:
    """Returns maps whose entries have one type each, but may be missing."""
    kinds = {name: source.choice("isfbml") for name in source.sample(NAMES, 3)}

    def value(kind: str) -> Any:
        match kind:
            case "i":
                return source.randrange(-300, 300)
            case "s":
                return source.choice(("", "x", "12", "20240102030405"))
            case "f":
                return source.choice((0.5, -1.5, 300.25))
            case "b":
                return source.random() < 0.5
            case "m":
                return {"a": source.randrange(9)}
            case _:
                return [source.randrange(9)]

    return [
        {name: value(kind) for name, kind in kinds.items() if source.random() < 0.7} or {"z": 1}
        for _ in range(source.randrange(1, 6))
    ]


def some_names(source: random.Random) -> str:
    return ",".join(source.sample((*NAMES, "nope"), source.randrange(1, 4)))


def _cast(source: random.Random) -> dict[str, str]:
    names = source.sample(NAMES, source.randrange(1, 4))
    return {"spec": ",".join(f"{name}:{source.choice(TYPES)}" for name in names)}


def _extract(source: random.Random) -> dict[str, str]:
    path = source.choice((*NAMES, "a.b", "b.a", "`d.e`.a", "a.b.c"))
    return {"field": path, "field.syntax.version": source.choice(("V1", "V2"))}


def _headers(source: random.Random) -> dict[str, str]:
    names = source.sample(NAMES, 2)
    operation = source.choice(("move", "copy"))
    return {"fields": ",".join(names), "headers": "h,i", "operation": operation}


def _insert(source: random.Random) -> dict[str, str]:
    fields = source.sample(("topic", "partition", "offset", "timestamp"), source.randrange(1, 4))
    names = (source.choice(("x", "y", "z", "a")) + str(number) for number in range(9))
    return {
        f"{each}.field": f"{name}{source.choice(('', '!', '?'))}"
        for each, name in zip(fields, names, strict=False)
    }


def _mask(source: random.Random) -> dict[str, str]:
    replacement = {"replacement": source.choice(("5", "text", "-2.5"))}
    return {"fields": some_names(source), **(replacement if source.random() < 0.4 else {})}


def _replace(source: random.Random) -> dict[str, str]:
    renames = ",".join(f"{old}:{old}{source.choice('xy')}" for old in source.sample(NAMES, 2))
    settings = {"exclude": some_names(source), "include": some_names(source), "renames": renames}
    return {name: text for name, text in settings.items() if source.random() < 0.5}


def _timestamp(source: random.Random) -> dict[str, str]:
    return {
        "field": source.choice(NAMES),
        "target.type": source.choice(("string", "unix", "Date", "Time", "Timestamp")),
        "format": source.choice(PATTERNS),
        "unix.precision": source.choice(("seconds", "milliseconds", "microseconds")),
    }


SETTINGS: dict[str, Callable[[random.Random], dict[str, str]]] = {
    "Cast": _cast,
    "ExtractField": _extract,
    "Flatten": lambda source: {"delimiter": source.choice((".", "_"))},
    "HeaderFrom": _headers,
    "HoistField": lambda _: {"field": "h"},
    "InsertField": _insert,
    "MaskField": _mask,
    "ReplaceField": _replace,
    "SetSchemaMetadata": lambda source: {"schema.name": source.choice(("n", "m"))},
    "TimestampConverter": _timestamp,
    "ValueToKey": lambda source: {"fields": some_names(source)},
    "TimestampRouter": lambda source: {"timestamp.format": source.choice(PATTERNS)},
}
NEVER_DEFAULT = ("Flatten", "HoistField", "TimestampRouter")
