"""Normalizes descriptors: everything whose order has no meaning is sorted.

The order of messages stays, because payloads identify a message by its index in the file. Options
are sorted when they are printed.
"""

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
)

_LAST = 2**31


def normalize(file: FileDescriptorProto) -> FileDescriptorProto:
    normal = FileDescriptorProto()
    normal.CopyFrom(file)
    public = sorted({file.dependency[index] for index in file.public_dependency})
    weak = {file.dependency[index] for index in file.weak_dependency}
    names = sorted(set(file.dependency) - set(public)) + public
    del normal.dependency[:], normal.public_dependency[:], normal.weak_dependency[:]
    normal.dependency.extend(names)
    normal.public_dependency.extend(range(len(names) - len(public), len(names)))
    normal.weak_dependency.extend(i for i, name in enumerate(names) if name in weak)
    for message in normal.message_type:
        _message(message)
    for enum in normal.enum_type:
        _enum(enum)
    normal.extension.sort(key=lambda field: (field.extendee, field.number))
    return normal


def _message(message: DescriptorProto) -> None:
    message.reserved_range.sort(key=lambda one: (one.start, one.end))
    message.reserved_name.sort()
    message.extension_range.sort(key=lambda one: (one.start, one.end))
    message.extension.sort(key=lambda field: (field.extendee, field.number))
    message.field.sort(key=lambda field: field.number)
    _oneofs(message)
    for nested in message.nested_type:
        _message(nested)
    for enum in message.enum_type:
        _enum(enum)


def _oneofs(message: DescriptorProto) -> None:
    """Sorts oneofs by their first fields."""
    first = [_LAST] * len(message.oneof_decl)
    for field in message.field:
        if field.HasField("oneof_index"):
            first[field.oneof_index] = min(first[field.oneof_index], field.number)
    order = sorted(range(len(first)), key=first.__getitem__)
    sorted_oneofs = [message.oneof_decl[index] for index in order]
    for field in message.field:
        if field.HasField("oneof_index"):
            field.oneof_index = order.index(field.oneof_index)
    copies = [type(oneof).FromString(oneof.SerializeToString()) for oneof in sorted_oneofs]
    del message.oneof_decl[:]
    message.oneof_decl.extend(copies)


def _enum(enum: EnumDescriptorProto) -> None:
    enum.reserved_range.sort(key=lambda one: (one.start, one.end))
    enum.reserved_name.sort()
    aliased = enum.options.allow_alias
    if enum.value and not aliased:
        default = enum.value[0].number  # a proto2 enum's default is its first value
        enum.value.sort(key=lambda value: (value.number != default, value.number))
