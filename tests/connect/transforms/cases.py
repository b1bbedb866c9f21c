"""Cases of all transforms: settings and records. What becomes of them is in `expected.json`.

Records are envelopes of Kafka's JsonConverter. `tests/conformance/connect/transforms` has Kafka's
own classes transform the same records, and compares.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PREFIX = "org.apache.kafka.connect.transforms."
LOGICAL = "org.apache.kafka.connect.data."

TIMESTAMP_MS = 1700000000123


@dataclass(frozen=True)
class Record:
    value: str | None = None
    key: str | None = None
    topic: str = "orders"
    partition: int = 3
    offset: int = 42
    timestamp: int | None = TIMESTAMP_MS
    headers: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Case:
    name: str
    transform: str
    """The class of Kafka, without its package."""
    settings: Mapping[str, str]
    records: Sequence[Record]
    replaces_nulls: bool = True
    """replace.null.with.default of the converter."""
    is_source: bool = False
    differs: str | None = field(default=None)
    """Why Kafka has another result, if it has."""

    def request(self) -> dict[str, Any]:
        return {
            "class": PREFIX + self.transform,
            "settings": dict(self.settings),
            "defaults": str(self.replaces_nulls).lower(),
            "source": self.is_source,
            "records": [
                {
                    "topic": record.topic,
                    "partition": record.partition,
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": record.key,
                    "value": record.value,
                    "headers": [list(each) for each in record.headers],
                }
                for record in self.records
            ],
        }


def all_cases() -> list[Case]:
    cases = [
        *casts(),
        *extractions(),
        *flattenings(),
        *header_changes(),
        *hoists(),
        *insertions(),
        *masks(),
        *replacements(),
        *routes(),
        *metadata_changes(),
        *timestamp_conversions(),
        *keys(),
        *predicates(),
        *invalid_settings(),
    ]
    names = [each.name for each in cases]
    assert len(set(names)) == len(names), [name for name in names if names.count(name) > 1]
    return cases


# Envelopes


def of(type_: str, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    return {"type": type_, "optional": optional, **more}


def logical(name: str, *, optional: bool = False, scale: int | None = None) -> dict[str, Any]:
    type_ = {"Decimal": "bytes", "Timestamp": "int64"}.get(name, "int32")
    parameters = {} if scale is None else {"parameters": {"scale": str(scale)}}
    return of(type_, optional=optional, name=LOGICAL + name, version=1, **parameters)


def struct(fields: Mapping[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    listed = [{**schema, "field": name} for name, schema in fields.items()]
    return {"type": "struct", "fields": listed, "optional": False, **more}


def dumps(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def typed(schema: Any, *payloads: Any) -> list[Record]:
    return [
        Record(None if payload is TOMBSTONE else dumps({"schema": schema, "payload": payload}))
        for payload in payloads
    ]


def free(*payloads: Any) -> list[Record]:
    return typed(None, *payloads)


TOMBSTONE = object()

PERSON = struct(
    {
        "id": of("int64"),
        "name": of("string", optional=True),
        "age": of("int32", optional=True, default=18),
    },
    name="acme.Person",
    version=2,
    doc="someone",
    parameters={"p": "q"},
)
ADA = {"id": 1, "name": "Ada", "age": 36}
BOB = {"id": 2, "name": None, "age": None}
PEOPLE = typed(PERSON, ADA, BOB, TOMBSTONE)
FREE_PEOPLE = free(ADA, {"id": 2}, TOMBSTONE)

TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")

NUMBERS = [0, 1, -1, 127, 128, -129, 32768, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]
REALS = [0.0, -0.5, 0.999, 1.5, -1.5, 300.7, 3e9, -3e9, 1e19, -1e19, 1e-5, 12345678.25, 1e7]
TEXTS = [
    "0", "+5", "-128", "128", "2147483648", "9223372036854775808", " 7", "7 ", "", "x", "1.5",
    "1e3",
    "-.5", "1f", "NaN", "-Infinity", "infinity", "0x1p3", "0x10", "true", "TRUE", "yes", "1e400",
    "007", "1_000", "1,5", "+", ".",
]  # fmt: skip
DECIMALS = ["AA==", "AQ==", "/w==", "MDk=", "AIrHIwSJ6AAAAA==", "/4rHIwSJ6AAAAA=="]


KEEPS_NAME = "the schema keeps its name, and Kafka cannot convert values that do not fit it"


def casts() -> Iterator[Case]:
    yield Case("cast fields", "Cast$Value", {"spec": "id:int8,age:string"}, PEOPLE)
    yield Case("cast fields of maps", "Cast$Value", {"spec": "id:string,x:int8"}, FREE_PEOPLE)
    yield Case(
        "cast fields of another value", "Cast$Value", {"spec": "a:int8"}, typed(of("string"), "x")
    )
    yield Case("cast fields of another map", "Cast$Value", {"spec": "a:int8"}, free("x"))
    yield Case("cast a whole struct", "Cast$Value", {"spec": "int8"}, PEOPLE)
    yield Case("cast a whole map", "Cast$Value", {"spec": "int8"}, FREE_PEOPLE)
    yield Case("cast a list", "Cast$Value", {"spec": "string"}, free([1]))
    yield Case(
        "cast a whole key",
        "Cast$Key",
        {"spec": "string"},
        [Record(key=each.value, value=each.value) for each in typed(of("int32"), 1, 2)],
    )
    sources: dict[str, tuple[Any, list[Any]]] = {
        "int64": (of("int64", optional=True), [*NUMBERS, None]),
        "int8": (of("int8"), [0, 127, -128]),
        "double": (of("double", optional=True), [*REALS, None]),
        "float": (of("float"), REALS),
        "boolean": (of("boolean", optional=True), [True, False, None]),
        "string": (of("string", optional=True, name="n", version=1, doc="d"), [*TEXTS, None]),
        "bytes": (of("bytes"), ["AQID", ""]),
        "decimal": (logical("Decimal", scale=4), DECIMALS),
        "small decimal": (logical("Decimal", scale=9), DECIMALS),
        "date": (logical("Date"), [0, 1, 19000, -3]),
        "time": (logical("Time"), [0, 1, 86399999]),
        "timestamp": (logical("Timestamp", optional=True), [0, TIMESTAMP_MS, 864000000, -5, None]),
        "array": (of("array", items=of("int8")), [[1]]),
    }
    for source, (schema, payloads) in sources.items():
        for target in TYPES:
            is_logical = schema.get("name", "").startswith(LOGICAL) and source != "array"
            yield Case(
                f"cast {source} to {target}",
                "Cast$Value",
                {"spec": target},
                typed(schema, *payloads),
                differs=KEEPS_NAME if is_logical else None,
            )
            field_schema = struct({"f": schema, "g": of("int8")})
            rows = typed(field_schema, *({"f": each, "g": 1} for each in payloads))
            yield Case(
                f"cast field of {source} to {target}", "Cast$Value", {"spec": f"f:{target}"}, rows
            )
    for target in TYPES:
        for kind, values in (("integers", NUMBERS), ("reals", REALS), ("texts", TEXTS)):
            yield Case(f"cast {kind} to {target}", "Cast$Value", {"spec": target}, free(*values))
    defaults = struct(
        {
            "a": of("string", optional=True, default="12"),
            "b": of("int32", optional=True, default=300),
        },
        optional=True,
    )
    rows = typed(defaults, {"a": "1", "b": None}, {"a": "2", "b": 2})
    yield Case("cast defaults", "Cast$Value", {"spec": "a:int16,b:int8"}, rows)
    yield Case("cast nulls with defaults", "Cast$Value", {"spec": "a:int16,b:int8"}, rows, False)
    yield Case(
        "cast nulls without their defaults",
        "Cast$Value",
        {"spec": "a:int16,b:int8", "replace.null.with.default": "false"},
        typed(defaults, {"a": None, "b": None}, {"a": "2", "b": 2}),
        False,
    )
    yield Case(
        "cast a default that fails",
        "Cast$Value",
        {"spec": "a:int8"},
        typed(struct({"a": of("string", default="x")}), {"a": "1"}),
    )
    yield Case(
        "cast a default", "Cast$Value", {"spec": "int8"}, typed(of("string", default="5"), "1")
    )


NESTED = struct(
    {
        "a": {
            **struct({"b": of("int32"), "c": of("string", optional=True, default="none")}),
            "optional": True,
        },
        "d.e": struct({"f": of("int8")}),
        "l": of("array", items=of("int8"), optional=True),
    }
)
NESTED_ROWS = typed(
    NESTED,
    {"a": {"b": 1, "c": "x"}, "d.e": {"f": 1}, "l": [1]},
    {"a": {"b": 1, "c": None}, "d.e": {"f": 2}, "l": None},
    {"a": None, "d.e": {"f": 3}, "l": []},
    TOMBSTONE,
)
FREE_NESTED = free(
    {"a": {"b": 1, "c": "x"}, "d.e": {"f": 1}, "l": [1]}, {"a": {"b": 2}}, {"x": 1}, TOMBSTONE
)


def extractions() -> Iterator[Case]:
    for path, version in (
        ("a", "V1"), ("a.b", "V1"), ("d.e", "V1"), ("a.b", "V2"), ("a.c", "v2"), ("`d.e`.f", "V2"),
        ("nope", "V2"), ("a.nope", "V2"), ("l.x", "V2"), ("a.", "V2"), ("l", "V1"),
    ):  # fmt: skip
        settings = {"field": path, "field.syntax.version": version}
        differs = (
            "Kafka cannot convert a null whose schema is required"
            if (path, version) == ("a.b", "V2")
            else None
        )
        yield Case(
            f"extract {path} {version}",
            "ExtractField$Value",
            settings,
            NESTED_ROWS,
            differs=differs,
        )
        yield Case(f"extract {path} {version} of maps", "ExtractField$Value", settings, FREE_NESTED)
    for has_default in ("true", "false"):
        yield Case(
            f"extract a default {has_default}",
            "ExtractField$Value",
            {"field": "age", "replace.null.with.default": has_default},
            PEOPLE,
            False,
        )
    yield Case("extract from text", "ExtractField$Value", {"field": "a"}, typed(of("string"), "x"))
    yield Case("extract from free text", "ExtractField$Value", {"field": "a"}, free("x", "y"))
    yield Case(
        "extract from keys",
        "ExtractField$Key",
        {"field": "id"},
        [Record(key=each.value, value=each.value) for each in PEOPLE],
    )


def flattenings() -> Iterator[Case]:
    yield Case("flatten", "Flatten$Value", {}, NESTED_ROWS)
    yield Case("flatten with another delimiter", "Flatten$Value", {"delimiter": "__"}, NESTED_ROWS)
    yield Case("flatten maps", "Flatten$Value", {"delimiter": "_"}, FREE_NESTED)
    yield Case("flatten text", "Flatten$Value", {}, typed(of("string"), "x"))
    yield Case("flatten free text", "Flatten$Value", {}, free("x"))
    with_map = struct({"m": of("map", keys=of("string"), values=of("int8"))})
    yield Case("flatten a map in a struct", "Flatten$Value", {}, typed(with_map, {"m": {"a": 1}}))
    inner = struct({"b": of("int32"), "c": of("int8", optional=True, default=7)})
    yield Case(
        "flatten defaults",
        "Flatten$Value",
        {},
        typed(struct({"a": inner}), {"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": None}}),
        False,
    )
    optional = struct({"a": of("int8"), "b": struct({"c": of("int8", doc="d")})}, optional=True)
    yield Case("flatten optional", "Flatten$Value", {}, typed(optional, {"a": 1, "b": {"c": 2}}))
    same = struct({"a": struct({"b": of("int8")}), "a.b": of("int8")})
    yield Case(
        "flatten to the same name", "Flatten$Value", {}, typed(same, {"a": {"b": 1}, "a.b": 2})
    )
    logicals = struct({"a": struct({"t": logical("Timestamp"), "d": logical("Decimal", scale=2)})})
    yield Case(
        "flatten logical types", "Flatten$Value", {}, typed(logicals, {"a": {"t": 5, "d": "AQ=="}})
    )


def header_changes() -> Iterator[Case]:
    headers = (("a", "1"), ("b", "two"), ("a", "3"))
    record = Record(PEOPLE[0].value, headers=headers)
    yield Case(
        "drop headers",
        "DropHeaders",
        {"headers": "a,x"},
        [record, Record(headers=headers[1:2]), Record()],
    )
    yield Case("drop no headers", "DropHeaders", {"headers": "x"}, [record])
    for literal in (
        "text", "1", "007", "+5", "-3.50", "1e3", "1.123456789", "1e300", "true", "false", "null",
        "",
        " x ", "[1, 2 ,3]", '["a",1]', "{a:1}", '{"a": "b\\"", "c":[true,null]}', "[1", "[1,]", "{",
        "2020-01-02", "12:34:56.789Z", "2020-01-02T03:04:05.678Z", '"quoted"', "true}", " true ",
        "1,2",
        "99999999999999999999", "1e500", "[]", "{}", "a:b", "9223372036854775807", "0.1", "-", "1d",
        "[2020-01-02]", '["2020-01-02"]',
    ):  # fmt: skip
        yield Case(
            f"insert header {literal!r}",
            "InsertHeader",
            {"header": "h", "value.literal": literal},
            [record, Record()],
        )
    for operation in ("move", "copy"):
        settings = {"fields": "name,age", "headers": "n,a", "operation": operation}
        records = [Record(each.value, headers=headers) for each in PEOPLE]
        yield Case(f"{operation} fields to headers", "HeaderFrom$Value", settings, records)
        records = [Record(each.value, headers=headers) for each in FREE_PEOPLE]
        yield Case(f"{operation} fields of maps to headers", "HeaderFrom$Value", settings, records)
        yield Case(
            f"{operation} fields of text to headers",
            "HeaderFrom$Value",
            settings,
            typed(of("string"), "x"),
        )
    kinds = {
        "i": (of("int8"), 5), "d": (of("double"), 1e10), "f": (of("float"), 0.1),
        "b": (of("bytes"), "AQID"),
        "t": (logical("Timestamp"), TIMESTAMP_MS), "y": (logical("Date"), 19000),
        "z": (logical("Time"), 5),
        "c": (logical("Decimal", scale=2), "MDk="),
        "l": (of("array", items=of("string")), ['a"', "b"]),
        "s": (struct({"x": of("string", optional=True), "y": of("double")}), {"x": None, "y": 1.0}),
        "m": (of("map", keys=of("string"), values=of("int8")), {"a": 1}),
        "n": (of("boolean"), True),
    }  # fmt: skip
    schema = struct({name: schema for name, (schema, _) in kinds.items()})
    yield Case(
        "headers of all types",
        "HeaderFrom$Value",
        {"fields": ",".join(kinds), "headers": ",".join(kinds), "operation": "move"},
        typed(schema, {name: value for name, (_, value) in kinds.items()}),
    )
    yield Case(
        "headers without their defaults",
        "HeaderFrom$Value",
        {
            "fields": "age",
            "headers": "a",
            "operation": "copy",
            "replace.null.with.default": "false",
        },
        typed(PERSON, ADA, BOB),
        False,
    )
    yield Case(
        "headers of fields that do not exist",
        "HeaderFrom$Value",
        {"fields": "nope", "headers": "a", "operation": "copy"},
        typed(PERSON, ADA),
        differs="Kafka fails with a NullPointerException",
    )
    yield Case(
        "a header of a key",
        "HeaderFrom$Key",
        {"fields": "id", "headers": "a", "operation": "move"},
        [Record(key=each.value) for each in PEOPLE],
    )


def hoists() -> Iterator[Case]:
    yield Case("hoist structs", "HoistField$Value", {"field": "f"}, PEOPLE)
    yield Case("hoist maps", "HoistField$Value", {"field": "f"}, FREE_PEOPLE)
    yield Case(
        "hoist text",
        "HoistField$Value",
        {"field": "f"},
        typed(of("string", optional=True), "x", None),
    )
    yield Case("hoist numbers without schema", "HoistField$Value", {"field": "f"}, free(1, 2))
    yield Case(
        "hoist keys",
        "HoistField$Key",
        {"field": "f"},
        [Record(key=each.value) for each in typed(of("int8"), 1)],
    )


def insertions() -> Iterator[Case]:
    everything = {
        "topic.field": "topic", "partition.field": "partition!", "offset.field": "offset?",
        "timestamp.field": "ts", "static.field": "st!", "static.value": "text",
    }  # fmt: skip
    yield Case("insert everything", "InsertField$Value", everything, PEOPLE)
    yield Case("insert everything into maps", "InsertField$Value", everything, FREE_PEOPLE)
    yield Case(
        "insert an offset in a source", "InsertField$Value", everything, PEOPLE, is_source=True
    )
    some = {"topic.field": "topic!", "partition.field": "p", "timestamp.field": "ts"}
    yield Case("insert in a source", "InsertField$Value", some, PEOPLE, is_source=True)
    yield Case(
        "insert into maps in a source", "InsertField$Value", some, FREE_PEOPLE, is_source=True
    )
    untimed = [Record(each.value, timestamp=None) for each in PEOPLE]
    yield Case("insert no timestamp", "InsertField$Value", {"timestamp.field": "ts"}, untimed)
    yield Case(
        "insert no required timestamp", "InsertField$Value", {"timestamp.field": "ts!"}, untimed
    )
    yield Case("insert a field that exists", "InsertField$Value", {"topic.field": "name"}, PEOPLE)
    yield Case(
        "insert a field that exists into maps",
        "InsertField$Value",
        {"topic.field": "name"},
        FREE_PEOPLE,
    )
    yield Case(
        "insert into text", "InsertField$Value", {"topic.field": "t"}, typed(of("string"), "x")
    )
    yield Case("insert into free text", "InsertField$Value", {"topic.field": "t"}, free("x"))
    yield Case(
        "insert into keys",
        "InsertField$Key",
        {"topic.field": "t"},
        [Record(key=each.value, value=each.value) for each in PEOPLE],
    )
    yield Case(
        "insert beside nulls",
        "InsertField$Value",
        {"topic.field": "t", "replace.null.with.default": "false"},
        PEOPLE,
        False,
    )
    yield Case("insert beside defaults", "InsertField$Value", {"topic.field": "t"}, PEOPLE, False)


MASKABLE: dict[str, tuple[Any, Any]] = {
    "i8": (of("int8"), 5), "i16": (of("int16"), 6), "i32": (of("int32"), 7),
    "i64": (of("int64"), 8),
    "f32": (of("float"), 1.5), "f64": (of("double"), 2.5), "b": (of("boolean"), True),
    "s": (of("string"), "secret"), "l": (of("array", items=of("int8")), [1]),
    "m": (of("map", keys=of("string"), values=of("int8")), {"a": 1}),
    "ts": (logical("Timestamp"), 5),
    "date": (logical("Date"), 5), "time": (logical("Time"), 5),
}  # fmt: skip


def masks() -> Iterator[Case]:
    schema = struct({name: schema for name, (schema, _) in MASKABLE.items()})
    rows = typed(schema, {name: value for name, (_, value) in MASKABLE.items()})
    yield Case("mask all types", "MaskField$Value", {"fields": ",".join(MASKABLE)}, rows)
    for name, (masked, value) in MASKABLE.items():
        row = typed(struct({name: masked}), {name: value})
        for replacement in ("3", "-1.9", "300", "text", "1e2"):
            settings = {"fields": name, "replacement": replacement}
            yield Case(f"mask {name} with {replacement}", "MaskField$Value", settings, row)
    odd = {"y": (of("bytes"), "AQ=="), "st": (struct({"a": of("int8")}), {"a": 1})}
    for name, (each, value) in odd.items():
        for settings in ({"fields": name}, {"fields": name, "replacement": "1"}):
            label = f"mask {name} {settings.get('replacement')}"
            yield Case(
                label, "MaskField$Value", settings, typed(struct({name: each}), {name: value})
            )
    decimals = struct({"d": logical("Decimal", scale=0)})
    yield Case("mask a decimal", "MaskField$Value", {"fields": "d"}, typed(decimals, {"d": "MDk="}))
    yield Case(
        "mask a decimal with a number",
        "MaskField$Value",
        {"fields": "d", "replacement": "12"},
        typed(decimals, {"d": "MDk="}),
    )
    yield Case(
        "mask a decimal with text",
        "MaskField$Value",
        {"fields": "d", "replacement": "x"},
        typed(decimals, {"d": "MDk="}),
    )
    scaled = struct({"d": logical("Decimal", scale=2)})
    yield Case(
        "mask a decimal with a scale",
        "MaskField$Value",
        {"fields": "d"},
        typed(scaled, {"d": "MDk="}),
        differs="Kafka's zero has another scale, so it cannot be converted",
    )
    yield Case("mask people", "MaskField$Value", {"fields": "name,age,nope"}, PEOPLE)
    yield Case(
        "mask people without defaults",
        "MaskField$Value",
        {"fields": "name,age", "replace.null.with.default": "false"},
        typed(PERSON, ADA, BOB),
        False,
    )
    yield Case(
        "mask people with defaults",
        "MaskField$Value",
        {"fields": "name,age"},
        typed(PERSON, ADA, BOB),
        False,
    )
    free_rows = free(
        {"i": 1, "d": 1.5, "b": True, "s": "x", "l": [1], "m": {"a": 1}}, {"i": 2}, TOMBSTONE
    )
    yield Case("mask maps", "MaskField$Value", {"fields": "i,d,b,s,l,m,nope"}, free_rows)
    for name in "idbslm":
        yield Case(
            f"mask {name} of maps with a number",
            "MaskField$Value",
            {"fields": name, "replacement": "7"},
            free_rows,
        )
    yield Case(
        "mask text",
        "MaskField$Value",
        {"fields": "i"},
        typed(of("string", optional=True), "x", None),
    )
    yield Case(
        "mask keys",
        "MaskField$Key",
        {"fields": "id"},
        [Record(key=each.value) for each in PEOPLE[:2]],
    )


def replacements() -> Iterator[Case]:
    for name, settings in {
        "exclude": {"exclude": "name,nope"},
        "include": {"include": "name,id"},
        "include and exclude": {"include": "name,id", "exclude": "id"},
        "include nothing that exists": {"include": "nope"},
        "rename": {"renames": "id:number,nope:x"},
        "rename and exclude": {"renames": "id:number,name:n", "exclude": "name"},
        "rename to an excluded name": {"renames": "id:age", "exclude": "age"},
        "rename to an existing name": {"renames": "id:age"},
        "rename a missing field to an existing name": {"renames": "nope:name"},
        "swap": {"renames": "id:name,name:id"},
        "keep nulls": {"exclude": "id", "replace.null.with.default": "false"},
        "nothing": {},
    }.items():
        yield Case(f"replace: {name}", "ReplaceField$Value", settings, PEOPLE, False)
        if not name.startswith("rename to an existing"):
            yield Case(f"replace in maps: {name}", "ReplaceField$Value", settings, FREE_PEOPLE)
    yield Case("replace in text", "ReplaceField$Value", {"exclude": "a"}, typed(of("string"), "x"))
    yield Case("replace in free text", "ReplaceField$Value", {"exclude": "a"}, free("x"))
    yield Case(
        "replace in keys",
        "ReplaceField$Key",
        {"include": "id"},
        [Record(key=each.value, value=each.value) for each in PEOPLE],
    )
    optional = struct({"a": of("int8"), "b": of("int8")}, optional=True)
    yield Case(
        "replace in optional structs",
        "ReplaceField$Value",
        {"exclude": "a"},
        typed(optional, {"a": 3, "b": 4}),
    )


def routes() -> Iterator[Case]:
    topics = [
        Record(topic=topic)
        for topic in ("orders", "db.public.orders", "a-2020", "ab", "", "orders")
    ]
    for regex, replacement in (
        ("orders", "o"), (r"(.*)\.(.*)\.(.*)", "$3-$1$2"), ("order", "x"), ("a|ab", "X$0"),
        (r"(?<name>[a-z]+)-(\d{4})", "${name}_$2"), (r"(.*)-(\d+)", r"\$1$11"),
        ("[a-z&&[^b-z]]+.*", "y"),
        (r"\p{Lower}+", "$0$0"), (r"\Qdb.\E.*", "q"), ("(o.*)", "$2"), ("(o.*)", "${nope}"),
        ("(o.*)", "a$"), ("(o.*)", "a\\"), ("(?i)ORDERS", "i"), ("a*+b", "p"),
        ("(x)?orders", "<$1>"),
    ):  # fmt: skip
        yield Case(
            f"route {regex} to {replacement}",
            "RegexRouter",
            {"regex": regex, "replacement": replacement},
            topics,
        )
    for topic_format, pattern in (
        ("${topic}-${timestamp}", "yyyyMMdd"), ("${timestamp}", "yyyy/MM/dd HH:mm:ss.SSS"),
        ("x", "yyyy"),
        ("${topic}", "yyyy"),
        ("$topic ${topic}${topic} ${timestamp} ${timestamp}", "EEE d MMM yy h a z"),
        ("${topic}_$1", "D 'o''clock'"),
    ):  # fmt: skip
        settings = {"topic.format": topic_format, "timestamp.format": pattern}
        records = [Record(timestamp=each) for each in (TIMESTAMP_MS, 0, -1, 253402300799999)]
        yield Case(f"route by time {topic_format} {pattern}", "TimestampRouter", settings, records)
    yield Case(
        "route by no time",
        "TimestampRouter",
        {},
        [Record(), Record(timestamp=None)],
        differs="the message of Kafka has the whole record",
    )
    yield Case("filter", "Filter", {}, PEOPLE)


def metadata_changes() -> Iterator[Case]:
    for name, settings in {
        "name": {"schema.name": "new"},
        "version": {"schema.version": "7"},
        "both": {"schema.name": "new", "schema.version": "0"},
        "with nulls": {"schema.name": "new", "replace.null.with.default": "false"},
    }.items():
        yield Case(f"set {name}", "SetSchemaMetadata$Value", settings, PEOPLE, False)
    settings = {"schema.name": "new"}
    yield Case("set the name of maps", "SetSchemaMetadata$Value", settings, FREE_PEOPLE)
    yield Case(
        "set the name of text",
        "SetSchemaMetadata$Value",
        settings,
        typed(of("string", optional=True, default="x", doc="d"), "a", None),
    )
    yield Case(
        "set the name of lists",
        "SetSchemaMetadata$Value",
        settings,
        typed(of("array", items=of("int8")), [1]),
    )
    yield Case(
        "set the name of a map",
        "SetSchemaMetadata$Value",
        settings,
        typed(of("map", keys=of("string"), values=of("int8")), {"a": 1}),
    )
    yield Case(
        "set the name of keys",
        "SetSchemaMetadata$Key",
        settings,
        [Record(key=each.value) for each in PEOPLE],
    )
    optional = struct({"a": of("int8")}, optional=True, doc="d", parameters={"p": "q"})
    yield Case(
        "set the name of optional structs",
        "SetSchemaMetadata$Value",
        settings,
        typed(optional, {"a": 3}),
    )


TIMES = [
    0,
    1,
    -1,
    -1001,
    TIMESTAMP_MS,
    1582934399999,
    253402300799999,
    -12219292800001,
    -62135596800000,
]
DATE_TEXTS = [
    "2023-11-14 22:13:20.123", "1970-01-01 00:00:00.000", "2023-1-4 2:3:0.5",
    "2023-13-40 25:61:61.1000",
    "2023-02-29 00:00:00.000", "2023-11-14 22:13:20.123 and more", "2023-11-14", "", "x",
    " 2023-11-14 22:13:20.123", "0001-01-01 00:00:00.000", "12023-11-14 22:13:20.123",
    "2023-11-14T22:13:20.123",
]  # fmt: skip


def timestamp_conversions() -> Iterator[Case]:
    targets: tuple[dict[str, str], ...] = (
        {"target.type": "string", "format": "yyyy-MM-dd HH:mm:ss.SSS"},
        {"target.type": "unix"},
        {"target.type": "unix", "unix.precision": "seconds"},
        {"target.type": "unix", "unix.precision": "microseconds"},
        {"target.type": "unix", "unix.precision": "nanoseconds"},
        {"target.type": "Date"},
        {"target.type": "Time"},
        {"target.type": "Timestamp"},
    )
    sources: dict[str, tuple[Any, list[Any]]] = {
        "Timestamp": (logical("Timestamp", optional=True), [*TIMES, None]),
        "Date": (logical("Date"), [0, 1, -1, 19000]),
        "Time": (logical("Time"), [0, 1, 86399999]),
        "unix": (of("int64", optional=True), [*TIMES, 2**62, -(2**62), 1700000000123456, None]),
        "string": (of("string", optional=True), [*DATE_TEXTS, None]),
        "int32": (of("int32"), [1]),
    }
    for target in targets:
        settings = {"format": "yyyy-MM-dd HH:mm:ss.SSS", **target}
        label = " ".join((target["target.type"], target.get("unix.precision", "")))
        for source, (schema, payloads) in sources.items():
            if source == "unix" and target["target.type"] in (
                "Date",
                "Timestamp",
                "Time",
                "string",
            ):
                payloads = [each for each in payloads if each is None or abs(each) < 2**50]
            yield Case(
                f"convert {source} to {label}",
                "TimestampConverter$Value",
                settings,
                typed(schema, *payloads),
            )
            rows = typed(
                struct({"t": schema, "a": of("int8")}), *({"t": each, "a": 1} for each in payloads)
            )
            yield Case(
                f"convert field {source} to {label}",
                "TimestampConverter$Value",
                {**settings, "field": "t"},
                rows,
            )
        is_date = target["target.type"] in ("Date", "Time", "Timestamp")
        differs = "Kafka cannot write dates without schema as JSON" if is_date else None
        yield Case(
            f"convert numbers to {label}",
            "TimestampConverter$Value",
            settings,
            free(*TIMES),
            differs=differs,
        )
        yield Case(
            f"convert texts to {label}",
            "TimestampConverter$Value",
            settings,
            free(*DATE_TEXTS),
            differs=differs,
        )
        yield Case(
            f"convert fields of maps to {label}",
            "TimestampConverter$Value",
            {**settings, "field": "t"},
            free({"t": 5, "a": "x"}, {"a": "y"}, TOMBSTONE),
            differs=differs,
        )
    unix = {"target.type": "unix", "field": "t"}
    yield Case("convert reals", "TimestampConverter$Value", unix, free({"t": 1.5}, {"a": 1}))
    yield Case(
        "convert text without a format",
        "TimestampConverter$Value",
        unix,
        free({"t": "x"}),
        differs="Kafka fails with a NullPointerException",
    )
    yield Case(
        "convert a field of text",
        "TimestampConverter$Value",
        unix,
        typed(of("string", optional=True), "x"),
    )
    yield Case("convert a field of free text", "TimestampConverter$Value", unix, free("x"))
    yield Case(
        "convert a missing field",
        "TimestampConverter$Value",
        {"target.type": "unix", "field": "nope"},
        PEOPLE,
    )
    defaults = struct(
        {"t": of("int64", optional=True, default=1000), "a": of("int8")},
        optional=True,
    )
    settings = {"target.type": "Timestamp", "unix.precision": "seconds", "field": "t"}
    yield Case(
        "convert defaults",
        "TimestampConverter$Value",
        settings,
        typed(defaults, {"t": 2, "a": 1}, {"t": None, "a": 2}),
        False,
    )
    yield Case(
        "convert nulls without their defaults",
        "TimestampConverter$Value",
        {**settings, "replace.null.with.default": "false"},
        typed(defaults, {"t": 2, "a": 1}, {"t": None, "a": 2}),
        False,
    )
    for pattern, texts in (
        ("yyyyMMddHHmmss", ["20231114221320", "2023111422132"]),
        (
            "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
            [
                "2023-11-14T22:13:20.123+01:00",
                "2023-11-14T22:13:20.123Z",
                "2023-11-14T22:13:20.123+0100",
            ],
        ),
        (
            "EEE, dd MMM yyyy HH:mm:ss Z",
            ["Tue, 14 Nov 2023 22:13:20 -0500", "tue, 14 november 2023 22:13:20 GMT"],
        ),
        ("yyyy-MM-dd'T'HH:mm:ss'Z'", ["2023-11-14T22:13:20Z"]),
        ("dd/MM/yy hh:mm a", ["14/11/23 10:13 PM", "14/11/99 12:13 am"]),
        ("yyyy-DDD", ["2024-366"]),
        ("SSSSSS", ["123456"]),
    ):
        unix = {"target.type": "unix", "format": pattern}
        yield Case(f"convert texts of {pattern}", "TimestampConverter$Value", unix, free(*texts))
    yield Case(
        "convert keys",
        "TimestampConverter$Key",
        {"target.type": "Timestamp"},
        [Record(key=each.value) for each in typed(of("int64"), 5)],
    )


def keys() -> Iterator[Case]:
    yield Case("value to key", "ValueToKey", {"fields": "age,id"}, PEOPLE)
    yield Case("value to key with defaults", "ValueToKey", {"fields": "age,id"}, PEOPLE, False)
    yield Case(
        "value to key without defaults",
        "ValueToKey",
        {"fields": "age", "replace.null.with.default": "false"},
        PEOPLE,
        False,
    )
    yield Case("value to key of maps", "ValueToKey", {"fields": "age,id"}, FREE_PEOPLE)
    yield Case("value to key of a missing field", "ValueToKey", {"fields": "nope"}, PEOPLE)
    yield Case(
        "value to key of text",
        "ValueToKey",
        {"fields": "a"},
        typed(of("string", optional=True), "x", None),
    )
    yield Case("value to key twice", "ValueToKey", {"fields": "id,id"}, PEOPLE[:1])


def predicates() -> Iterator[Case]:
    topics = [
        Record(topic=topic, headers=[("h", "1")] if index % 2 else [])
        for index, topic in enumerate(("orders", "orders-1", "x"))
    ]
    for pattern in ("orders", "orders.*", r"[a-z]+-\d", "x|orders"):
        yield Case(
            f"topic matches {pattern}", "predicates.TopicNameMatches", {"pattern": pattern}, topics
        )
    for name in ("h", "x"):
        yield Case(f"has header {name}", "predicates.HasHeaderKey", {"name": name}, topics)
    yield Case("tombstones", "predicates.RecordIsTombstone", {}, PEOPLE)


def invalid_settings() -> Iterator[Case]:
    tables: dict[str, tuple[dict[str, str], ...]] = {
        "Cast$Value": (
            {}, {"spec": ""}, {"spec": "a:b:c"}, {"spec": "a:bytes"}, {"spec": "int8,int16"},
        ),
        "DropHeaders": ({}, {"headers": ""}, {"headers": "a,"}),
        "ExtractField$Value": (
            {}, {"field": "`a", "field.syntax.version": "V2"},
            {"field": "a", "field.syntax.version": "V3"},
            {"field": "a", "replace.null.with.default": "x"},
        ),
        "HeaderFrom$Value": (
            {"fields": "", "headers": "a", "operation": "move"},
            {"fields": "a,b", "headers": "a", "operation": "move"},
            {"fields": "a", "headers": "a", "operation": "x"}, {"fields": "a", "headers": "a"},
        ),
        "HoistField$Value": ({},),
        "InsertField$Value": ({}, {"static.value": "x"}),
        "InsertHeader": ({"header": "h"}, {}),
        "MaskField$Value": ({}, {"fields": ""}, {"fields": "a", "replacement": ""}),
        "RegexRouter": ({"regex": "a"}, {}),
        "ReplaceField$Value": ({"exclude": "a,"}, {"renames": "a"}, {"renames": "a:b:c"}),
        "SetSchemaMetadata$Value": ({}, {"schema.version": "x"}),
        "TimestampConverter$Value": (
            {}, {"target.type": "x"}, {"target.type": "string"},
            {"target.type": "unix", "unix.precision": "x"},
        ),
        "ValueToKey": ({}, {"fields": ""}),
        "predicates.TopicNameMatches": ({}, {"pattern": ""}),
        "predicates.HasHeaderKey": ({}, {"name": ""}),
    }  # fmt: skip
    for transform, all_settings in tables.items():
        for settings in all_settings:
            yield Case(f"{transform} with {settings}", transform, settings, [])
    for transform, settings in (
        ("Cast$Value", {"spec": "int99"}),
        ("TimestampConverter$Value", {"target.type": "string", "format": "foo"}),
        ("RegexRouter", {"regex": "(", "replacement": "x"}),
        ("InsertField$Value", {"static.field": "a"}),
    ):
        yield Case(
            f"{transform} with {settings}",
            transform,
            settings,
            [],
            differs="the message has less of Java in it",
        )
