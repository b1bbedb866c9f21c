"""Normalizes options as Confluent's registry does.

Custom options that can be resolved have the full names of their extensions, and are one message in
text format. Others stay as they are. All are sorted by name.
"""

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from operator import itemgetter

from barnabas.schemas.protobuf.syntax import (
    Options,
    OptionValue,
    OptionWord,
    ProtoField,
    ProtoMessage,
    ProtoOption,
)
from barnabas.schemas.protobuf.type_table import TypeTable

_MAX_DIGITS = 100


class OptionNormalizer:
    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self._fields: dict[str, dict[str, ProtoField]] = {}

    def normalize(self, options: Options, scope: str) -> Options:
        by_name: dict[str, list[ProtoOption]] = {}
        for option in sorted((self._qualified(one, scope) for one in options), key=_sort_key):
            by_name.setdefault(option.name, []).append(option)
        return tuple(
            ProtoOption(option.name, self._value(option.value, scope), option.is_custom)
            for name, same in by_name.items()
            for option in self._merged(name, same, scope)
        )

    def _qualified(self, option: ProtoOption, scope: str) -> ProtoOption:
        if not option.is_custom:
            return option
        full_name = self._table.find_extension(option.name, scope)
        if full_name is None:
            return option
        return ProtoOption(full_name, _as_message(option.value), is_custom=True)

    def _merged(self, name: str, same: list[ProtoOption], scope: str) -> Iterable[ProtoOption]:
        """Merges the assignments to one option, unless it is repeated."""
        field = self._table.extensions.get(name)
        if field is None or field.label == "repeated":
            return same
        value = same[0].value
        for option in same[1:]:
            value = self._merge(field, value, option.value, scope)
        return [ProtoOption(name, value, same[0].is_custom)]

    def _merge(
        self, field: ProtoField, first: OptionValue, second: OptionValue, scope: str
    ) -> OptionValue:
        if not (isinstance(first, dict) and isinstance(second, dict)):
            return second
        fields = self._fields_of(field, scope)
        merged = first if isinstance(first, _MergedMessage) else _MergedMessage(first)
        for name, value in second.items():
            if name not in merged:
                merged[name] = value
            elif (inner := fields.get(name)) is not None and _is_single(inner):
                merged[name] = self._merge(inner, merged[name], value, scope)
            else:
                merged[name] = _append(merged[name], value)
        return merged

    def _fields_of(self, field: ProtoField, scope: str) -> dict[str, ProtoField]:
        """Returns the fields of the field's type by name, or nothing if it is no message."""
        entry = self._table.find(field.type, scope)
        if entry is None or not isinstance(entry.node, ProtoMessage):
            return {}
        if entry.full_name not in self._fields:
            oneofs = (one for oneof in entry.node.oneofs for one in oneof.fields)
            members = (*entry.node.fields, *oneofs)
            self._fields[entry.full_name] = {member.name: member for member in members}
        return self._fields[entry.full_name]

    def _value(self, value: OptionValue, scope: str) -> OptionValue:
        match value:
            case OptionWord(text, is_number=True):
                return OptionWord(format_number(text), is_number=True)
            case ProtoOption(name, inner, is_custom):
                return ProtoOption(name, self._value(inner, scope), is_custom)
            case list():
                return [self._nested(one, scope) for one in value]
            case dict():
                return {
                    name: self._nested(one, scope)
                    for name, one in sorted(
                        ((self._field_name(name, scope), one) for name, one in value.items()),
                        key=itemgetter(0),
                    )
                    if one != []
                }
            case _:
                return value

    def _nested(self, value: OptionValue, scope: str) -> OptionValue:
        """A list of one value is that value, within a message."""
        if isinstance(value, _MergedList):
            return self._nested(value.distinct(), scope)
        if isinstance(value, list) and len(value) == 1:
            return self._nested(value[0], scope)
        return self._value(value, scope)

    def _field_name(self, name: str, scope: str) -> str:
        if not name.startswith("["):
            return name
        full_name = self._table.find_extension(name[1:-1], scope)
        return name if full_name is None else f"[{full_name}]"


def _sort_key(option: ProtoOption) -> str:
    """A standard option can have a longer name: `features.a`."""
    if option.is_custom or not isinstance(option.value, ProtoOption):
        return option.name
    return f"{option.name}.{_sort_key(option.value)}"


def _as_message(value: OptionValue) -> OptionValue:
    """Returns `(a).b.c = 1` as `(a) = {b: {c: 1}}`."""
    return {value.name: _as_message(value.value)} if isinstance(value, ProtoOption) else value


class _MergedMessage(dict[str, OptionValue]):
    """A message that may be changed: no other value refers to it."""


class _MergedList(list[OptionValue]):
    """The values of several assignments to a repeated field. Each value counts once."""

    def distinct(self) -> list[OptionValue]:
        return list({repr(value): value for value in self}.values())


def _is_single(field: ProtoField) -> bool:
    return field.label != "repeated" and field.key_type is None


def _append(first: OptionValue, second: OptionValue) -> _MergedList:
    if not isinstance(first, _MergedList):
        first = _MergedList(first if isinstance(first, list) else [first])
    first.extend(second if isinstance(second, list) else [second])
    return first


def format_number(text: str) -> str:
    """Returns the number in decimal, with up to three digits after the point, as Java prints it."""
    if (integer := parse_integer(text)) is not None:
        return str(integer)
    if text.removeprefix("-").isdecimal():  # neither octal nor decimal, or too long
        return text
    try:
        number = Decimal(text.rstrip("fF"))
    except InvalidOperation:
        return text
    if not number.is_finite() or abs(number.adjusted()) > _MAX_DIGITS:
        return text
    rounded = number.quantize(Decimal("0.001"), ROUND_HALF_EVEN, Context(prec=2 * _MAX_DIGITS))
    return f"{rounded:f}".rstrip("0").rstrip(".")


def parse_integer(text: str) -> int | None:
    """Returns a decimal, hexadecimal or octal integer, or None if it is none or too long."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if len(digits) > _MAX_DIGITS:
        return None
    try:
        if digits[:2] in ("0x", "0X"):
            return sign * int(digits, 16)
        is_octal = digits.startswith("0") and len(digits) > 1
        return sign * int(digits, 8 if is_octal else 10) if digits.isdecimal() else None
    except ValueError:
        return None
