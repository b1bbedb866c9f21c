"""A message with a field of every sort, values for it, and what its columns are to hold."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from barnabas.schemas.protobuf import parse

TEXT = """
syntax = "proto3";
package sample;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Other { string only = 1; }
message Every {
  double f_double = 1;
  float f_float = 2;
  int32 f_int32 = 3;
  int64 f_int64 = 4;
  uint32 f_uint32 = 5;
  uint64 f_uint64 = 6;
  sint32 f_sint32 = 7;
  sint64 f_sint64 = 8;
  fixed32 f_fixed32 = 9;
  fixed64 f_fixed64 = 10;
  sfixed32 f_sfixed32 = 11;
  sfixed64 f_sfixed64 = 12;
  bool f_bool = 13;
  string f_string = 14;
  bytes f_bytes = 15;
  Color f_enum = 16;
  optional int32 o_int32 = 20;
  optional string o_string = 21;
  optional Color o_enum = 22;
  optional bool o_bool = 23;
  optional uint64 o_uint64 = 24;
  repeated int32 r_int32 = 30;
  repeated double r_double = 31 [packed = false];
  repeated string r_string = 32;
  repeated Color r_enum = 33;
  repeated bool r_bool = 34;
  repeated uint64 r_uint64 = 35;
  repeated sint64 r_sint64 = 36 [packed = false];
  repeated Inner r_inner = 37;
  repeated google.protobuf.Timestamp r_at = 38;
  repeated google.protobuf.Int64Value r_wrapped = 39;
  map<string, int64> m_text = 40;
  map<int32, Inner> m_inner = 41;
  map<bool, string> m_bool = 42;
  map<uint64, Color> m_enum = 43;
  Inner inner = 50;
  google.protobuf.Timestamp at = 51;
  google.protobuf.StringValue w_string = 52;
  google.protobuf.DoubleValue w_double = 53;
  google.protobuf.UInt64Value w_uint64 = 54;
  google.protobuf.BoolValue w_bool = 55;
  google.protobuf.BytesValue w_bytes = 56;
  oneof choice {
    int32 c_int32 = 60;
    string c_string = 61;
    Inner c_inner = 62;
    google.protobuf.Timestamp c_at = 63;
  }
  string far = 536870911;
  int32 near = 5000;

  message Inner {
    string name = 1;
    repeated int64 numbers = 2;
    optional Deep deep = 3;
    oneof either { int32 a = 4; bool b = 5; }
    message Deep { map<string, string> tags = 1; Color color = 2; }
  }
}
enum Color { NONE = 0; RED = 1; GREEN = 5; BELOW = -1; }
"""

SCHEMA = parse(TEXT, {})
EVERY = SCHEMA.message("Every")
Every: type[Message] = GetMessageClass(EVERY)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRAPPED = {"Int64Value", "StringValue", "DoubleValue", "UInt64Value", "BoolValue", "BytesValue"}


def expected(message: Message) -> dict[str, Any]:
    """What the columns hold of it, said by the library's own view."""
    return {field.name: _column(message, field) for field in message.DESCRIPTOR.fields}


def _column(message: Message, field: FieldDescriptor) -> Any:
    if field.message_type and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        entries = getattr(message, field.name)
        return {_value(key, one): _value(value, entries[one]) for one in list(entries)}
    if field.is_repeated:
        return [_value(field, one) for one in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, getattr(message, field.name))


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is None:
        if field.enum_type:
            known = field.enum_type.values_by_number.get(value)
            return known.name if known else str(value)
        unsigned = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
        return Decimal(value) if field.type in unsigned else value
    if field.message_type.name == "Timestamp":
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if field.message_type.name in _WRAPPED:
        return _value(field.message_type.fields_by_name["value"], value.value)
    return expected(value)


def columns(value: Any) -> Any:
    """A value of the columns, maps as dicts."""
    if isinstance(value, dict):
        return {name: columns(one) for name, one in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            entries = {key: columns(one) for key, one in value}
            assert len(entries) == len(value), f"a key is there twice in {value}"
            return entries
        return [columns(one) for one in value]
    return value


def same(found: Any, wanted: Any) -> bool:
    """An empty map and an empty list are both [] in a column; NaN is itself."""
    if isinstance(wanted, dict):
        if found == [] and not wanted:
            return True
        return found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float) and wanted != wanted:
        return bool(found != found)
    return bool(found == wanted) and type(found) is type(wanted)


@st.composite
def messages(draw: st.DrawFn, descriptor: Descriptor = EVERY) -> Message:
    message = GetMessageClass(descriptor)()
    fields = draw(st.lists(st.sampled_from(list(descriptor.fields)), max_size=8))
    for field in fields:
        _fill(draw, message, field)
    return message


def _fill(draw: st.DrawFn, message: Message, field: FieldDescriptor) -> None:
    if field.message_type and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        for one in draw(st.lists(_scalars(key), max_size=3)):
            if value.message_type:
                getattr(message, field.name)[one].CopyFrom(draw(_submessages(value)))
            else:
                getattr(message, field.name)[one] = draw(_scalars(value))
    elif field.is_repeated:
        values = _submessages(field) if field.message_type else _scalars(field)
        getattr(message, field.name).extend(draw(st.lists(values, max_size=4)))
    elif field.message_type:
        getattr(message, field.name).CopyFrom(draw(_submessages(field)))
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, draw(_scalars(field)))


def _submessages(field: FieldDescriptor) -> st.SearchStrategy[Message]:
    if field.message_type.name == "Timestamp":
        made = GetMessageClass(field.message_type)
        seconds = st.integers(-62135596800, 253402300799)
        return st.builds(
            lambda s, us: made(seconds=s, nanos=us * 1000), seconds, st.integers(0, 999999)
        )
    return messages(field.message_type)


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type:
        return st.sampled_from([0, 1, 5, -1, 7, 2**31 - 1, -(2**31)])
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_INT32:
            return st.integers(-(2**31), 2**31 - 1)
        case FieldDescriptor.CPPTYPE_INT64:
            return st.integers(-(2**63), 2**63 - 1)
        case FieldDescriptor.CPPTYPE_UINT32:
            return st.integers(0, 2**32 - 1)
        case FieldDescriptor.CPPTYPE_UINT64:
            return st.integers(0, 2**64 - 1)
        case FieldDescriptor.CPPTYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return st.floats()
        case FieldDescriptor.CPPTYPE_FLOAT:
            return st.floats(width=32)
    return st.binary(max_size=20) if field.type == FieldDescriptor.TYPE_BYTES else st.text()
