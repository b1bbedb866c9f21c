"""Payloads to columns: what the protobuf library wrote, and what nobody should have written."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.registry.columns.protobuf.samples import EVERY, columns, expected, messages, same

from barnabas.registry.columns.protobuf.decode import ProtobufDecoder


@given(st.lists(st.none() | messages(), max_size=5))
@settings(deadline=None, max_examples=200)
def test_what_the_library_writes_is_read_as_it_reads_it(written) -> None:
    payloads = [None if one is None else one.SerializeToString() for one in written]
    decoded = ProtobufDecoder(EVERY, None).decode(pa.array(payloads, pa.binary()))
    decoded.values.validate(full=True)
    assert decoded.reasons is None
    for found, message in zip(decoded.values.to_pylist(), written, strict=True):
        if message is None:
            assert found is None
        else:
            assert same(columns(found), expected(message)), (found, message)
