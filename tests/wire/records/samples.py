"""Records for tests: strategies, and batches that the real Kafka wrote."""

from hypothesis import settings
from hypothesis import strategies as st

from barnabas.wire.records.build import Record
from barnabas.wire.records.compression import Codec

law = settings(max_examples=60, deadline=None)  # plain Python on a busy machine has its time

NOW_MS = 1_700_000_000_000

cells = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=10), cells), max_size=3)
timestamps = st.integers(-1, NOW_MS * 2)
codecs = st.sampled_from(Codec)


@st.composite
def records(
    draw: st.DrawFn, base_offset: int = 0, times: st.SearchStrategy[int] = timestamps
) -> list[Record]:
    fields = draw(st.lists(st.tuples(times, cells, cells, headers), min_size=1, max_size=12))
    return [Record(base_offset + index, *values) for index, values in enumerate(fields)]


def some_records(count: int = 3, *, timestamp: int = NOW_MS) -> list[Record]:
    return [
        Record(index, timestamp + index, b"key-%d" % index, b"value-%d" % index, [])
        for index in range(count)
    ]


# Two records at offset 5010, leader epoch 0, appended by Apache Kafka 4.3.1 to a topic with each
# compression.type, so that the compressed bytes are those of Kafka's own Java libraries.
FROM_KAFKA = {
    Codec.NONE: (
        "00000000000013920000009100000000024a06d9630000000000010000018bcfe568000000018bcfe56807"
        "ffffffffffffffffffffffffffff00000002ae01000000026b90016261726e61626173206261726e616261"
        "73206261726e61626173206261726e61626173206261726e61626173206261726e61626173206261726e61"
        "626173206261726e61626173200402680231026e010c000e02010100"
    ),
    Codec.GZIP: (
        "0000000000001392000000680000000002e75a6a560001000000010000018bcfe568000000018bcfe56807"
        "ffffffffffffffffffffffffffff000000021f8b08000000000000ff5bc7c8c0c0c0943d813129b1282f31"
        "29b1588142060b53069321531e230f031f13232303006d7ef3a360000000"
    ),
    Codec.SNAPPY: (
        "00000000000013920000006c00000000021c11719d0002000000010000018bcfe568000000018bcfe56807"
        "ffffffffffffffffffffffffffff0000000282534e41505059000000000100000001000000276044ae0100"
        "0000026b90016261726e6162617320fa0900380402680231026e010c000e02010100"
    ),
    Codec.LZ4: (
        "0000000000001392000000680000000002b5bffb950003000000010000018bcfe568000000018bcfe56807"
        "ffffffffffffffffffffffffffff0000000204224d1860408228000000ff03ae01000000026b9001626172"
        "6e616261732009002cf0000402680231026e010c000e0201010000000000"
    ),
    Codec.ZSTD: (
        "0000000000001392000000660000000002603c721c0004000000010000018bcfe568000000018bcfe56807"
        "ffffffffffffffffffffffffffff0000000228b52ffd00584c01001402ae01000000026b90016261726e61"
        "626173200402680231026e010c000e02010100010048a98401010000"
    ),
}
IN_FROM_KAFKA = [
    Record(5010, 1_700_000_000_000, b"k", b"barnabas " * 8, [("h", b"1"), ("n", None)]),
    Record(5011, 1_700_000_000_007, None, None, []),
]
