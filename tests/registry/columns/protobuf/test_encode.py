"""Columns to payloads: the protobuf library reads what was meant."""

import pyarrow as pa
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.registry.columns.protobuf.samples import EVERY, Every, expected, messages, same

from barnabas.registry.columns.protobuf.decode import ProtobufDecoder
from barnabas.registry.columns.protobuf.encode import ProtobufEncoder


@given(st.lists(st.none() | messages(), max_size=5), st.integers(0, 2))
@settings(deadline=None, max_examples=100)
def test_the_library_reads_what_is_written(written: list[Message | None], start: int) -> None:
    payloads = [None if one is None else one.SerializeToString() for one in written]
    values = ProtobufDecoder(EVERY, None).decode(pa.array(payloads, pa.binary())).values
    encoded = ProtobufEncoder(EVERY, values.type, b"").encode(values[start:])
    encoded.validate(full=True)
    for payload, message in zip(encoded.to_pylist(), written[start:], strict=True):
        if message is None:
            assert payload is None
        else:
            assert same(expected(Every.FromString(payload)), expected(message))
