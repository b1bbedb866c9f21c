"""Records of the cluster's own topics, as Kafka's message formatters print them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.cli.work.dump.decoders import Types, group_types, transaction_types
from barnabas.wire.as_json import as_json
from barnabas.wire.errors import KafkaError, ProtocolViolation

_NUMBER_BYTES = 2
"""A key begins with its type, a value with its version."""


@dataclass(slots=True, frozen=True)
class Formatter:
    """Prints the records of some types, and passes over the others."""

    types: Callable[[], Types]
    printed: frozenset[int]

    def line(self, message: Any) -> bytes:
        """One line of JSON; Kafka's own run into each other."""
        key, value = message.key(), message.value()
        number = -1 if key is None else int.from_bytes(key[:_NUMBER_BYTES])
        if number not in self.printed:
            return b""
        key_type, value_type = self.types()[number]
        try:
            told_key = as_json(key_type.read_exactly(key, 0, _NUMBER_BYTES), 0)
            told_value = None
            if value is not None:
                version = int.from_bytes(value[:_NUMBER_BYTES])
                read, _ = value_type.read(value, version, _NUMBER_BYTES)
                told_value = {"version": version, "data": as_json(read, version)}
        except (KafkaError, ProtocolViolation):
            return b""  # of a version that is not known yet
        told = {"key": {"type": number, "data": told_key}, "value": told_value}
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


FORMATTERS = {
    "OffsetsMessageFormatter": Formatter(group_types, frozenset((0, 1))),
    "GroupMetadataMessageFormatter": Formatter(group_types, frozenset((2,))),
    "TransactionLogMessageFormatter": Formatter(transaction_types, frozenset((0,))),
}
"""By the last part of their class names."""
