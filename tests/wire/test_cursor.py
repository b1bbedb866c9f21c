"""The cursor and the sink agree with the encodings of Kafka's primitive types."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.uncompiled import compiled_and_plain

from barnabas.wire import _cursor
from barnabas.wire.outgoing import Outgoing

both = compiled_and_plain(_cursor)

INTEGERS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q"}


def _range(size: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1)


fields = st.one_of(
    *(
        st.tuples(st.just(name), _range(struct.calcsize(layout)))
        for name, layout in INTEGERS.items()
    ),
    st.tuples(st.just("uvarint"), st.integers(0, 2**31 - 1)),
    st.tuples(st.sampled_from(["string", "compact"]), st.none() | st.text(max_size=300)),
    st.tuples(st.just("uuid"), st.binary(min_size=16, max_size=16)),
)


def _write(sink: _cursor.Sink, name: str, value: object) -> None:
    match name:
        case "string" | "compact":
            sink.string(value, name == "compact")
        case "uuid":
            sink.raw(value)
        case _:
            getattr(sink, name)(value)


def _read(cursor: _cursor.Cursor, name: str) -> object:
    match name:
        case "string" | "compact":
            return cursor.string(name == "compact")
        case _:
            return getattr(cursor, name)()


def _bytes(sink: _cursor.Sink) -> Outgoing:
    out = Outgoing()
    sink.append_to(out)
    return out


@given(st.lists(fields, max_size=40))
def test_a_cursor_reads_what_a_sink_wrote(values: list[tuple[str, object]]) -> None:
    sink = _cursor.Sink()
    for name, value in values:
        _write(sink, name, value)
    encoded = _bytes(sink)
    cursor = _cursor.Cursor()
    cursor.open(memoryview(bytes(encoded) + b"\0"), 0)
    assert [(name, _read(cursor, name)) for name, _ in values] == values
    assert not cursor.is_short
    assert cursor.at == len(encoded) == sink.position


@given(st.lists(fields, min_size=1, max_size=10), st.data())
def test_a_read_beyond_the_end_is_zero_and_noticed(
    values: list[tuple[str, object]], data: st.DataObject
) -> None:
    sink = _cursor.Sink()
    for name, value in values:
        _write(sink, name, value)
    encoded = _bytes(sink)
    kept = data.draw(st.integers(0, len(encoded) - 1))
    cursor = _cursor.Cursor()
    cursor.open(memoryview(bytes(encoded))[:kept] if kept else memoryview(b""), 0)
    for name, _ in values:
        last = _read(cursor, name)
    assert cursor.is_short
    assert not last or isinstance(last, str)
    assert cursor.at == kept


@pytest.mark.parametrize(("name", "layout"), INTEGERS.items())
@given(data=st.data())
def test_integers_are_big_endian(name: str, layout: str, data: st.DataObject) -> None:
    value = data.draw(_range(struct.calcsize(layout)))
    sink = _cursor.Sink()
    getattr(sink, name)(value)
    assert _bytes(sink) == struct.pack(layout, value)


@given(st.integers(0, 9_000))
def test_integers_are_written_over_reserved_bytes(before: int) -> None:
    sink = _cursor.Sink()
    sink.raw(bytes(before))
    at = sink.reserve(8)
    sink.patch_int64(at, -(2**60))
    assert _bytes(sink) == bytes(before) + struct.pack(">q", -(2**60))


def test_regions_follow_the_bytes_of_earlier_responses() -> None:
    class Region:
        size_bytes = 5

    sink, region = _cursor.Sink(), Region()
    sink.int32(1)
    sink.region(region)
    sink.int16(2)
    out = Outgoing(b"123")
    sink.append_to(out)
    assert out.regions == [(7, region)]
    assert out == b"123" + struct.pack(">ih", 1, 2)
    sink.clear()
    assert (sink.position, sink.regions) == (0, [])


def test_text_that_is_no_utf_8_is_noticed() -> None:
    cursor = _cursor.Cursor()
    cursor.open(memoryview(b"\x00\x02\xff\xfe"), 0)
    assert cursor.string(False) is None
    assert cursor.is_short
