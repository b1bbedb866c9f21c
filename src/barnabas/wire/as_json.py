"""Messages as the JSON that Kafka's own tools print: the fields of one version, in camel case."""

import base64
from typing import Any

from barnabas.wire.codec.layout import Fixed, layout
from barnabas.wire.schema import Struct
from barnabas.wire.uuid import to_text

_UUID_CODE = "16s"


def as_json(message: Struct, version: int) -> dict[str, Any]:
    """Returns a dict for `json.dumps`; tagged fields with their default value are omitted."""
    fields: dict[str, Any] = {}
    for each in layout(type(message)):
        if version not in each.versions:
            continue
        value = getattr(message, each.name)
        if each.tag is not None and _is_default(value, each.default, each.defaults_to_empty):
            continue
        is_uuid = isinstance(each.scalar, Fixed) and each.scalar.code == _UUID_CODE
        if each.is_array and value is not None:
            fields[_camel_case(each.name)] = [_value(one, version, is_uuid) for one in value]
        else:
            fields[_camel_case(each.name)] = _value(value, version, is_uuid)
    return fields


def _value(value: Any, version: int, is_uuid: bool) -> Any:
    if isinstance(value, Struct):
        return as_json(value, version)
    if isinstance(value, bytes | bytearray | memoryview):
        return to_text(bytes(value)) if is_uuid else base64.b64encode(value).decode()
    return value


def _is_default(value: Any, default: Any, defaults_to_empty: bool) -> bool:
    return value == [] if defaults_to_empty else bool(value == default)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
