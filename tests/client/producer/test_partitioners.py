"""Keys go where other clients would put them, compiled and not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.uncompiled import load_uncompiled

from barnabas.client.producer import _partitioners as compiled

plain = load_uncompiled(compiled)


@pytest.mark.parametrize("module", [compiled, plain], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # what Java's own tests expect, without the sign
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(module: Any, key: bytes, hashed: int) -> None:
    assert module.murmur2(key) == hashed & 0x7FFFFFFF


@given(st.binary(max_size=50))
def test_compiled_and_plain_agree(key: bytes) -> None:
    assert compiled.murmur2(key) == plain.murmur2(key)
    assert compiled.fnv1a(key) == plain.fnv1a(key)


@given(st.lists(st.none() | st.binary(max_size=10)), st.integers(0, 3), st.integers(1, 7))
def test_a_column_of_keys_has_the_partitions_of_its_keys(
    keys: list[bytes | None], skipped: int, partitions: int
) -> None:
    import pyarrow as pa

    column = pa.array([*[b"skip"] * skipped, *keys], pa.binary()).slice(skipped)
    validity, offsets, content = column.buffers()
    expected = [-1 if key is None else compiled.murmur2(key) % partitions for key in keys]
    for module in (compiled, plain):
        for hashed in (None, module.murmur2):
            result = memoryview(bytearray(4 * len(keys))).cast("i")
            module.hash_partitions(
                memoryview(offsets or bytes(4)).cast("B").cast("i"),
                memoryview(validity or b"").cast("B"),
                memoryview(content or b"").cast("B"),
                column.offset if offsets else 0,
                len(keys),
                hashed,
                partitions,
                -1,
                result,
            )
            assert result.tolist() == expected


@pytest.mark.parametrize("module", [compiled, plain], ids=["compiled", "plain"])
def test_a_truncated_column_is_rejected(module: Any) -> None:
    result = memoryview(bytearray(8)).cast("i")
    offsets = memoryview(bytes(8)).cast("i")
    empty = memoryview(b"")
    with pytest.raises(ValueError, match="fewer cells"):
        module.hash_partitions(offsets, empty, empty, 0, 2, None, 3, -1, result)
    beyond = memoryview(bytearray(8)).cast("i")
    beyond[1] = 100
    with pytest.raises(ValueError, match="not in its content"):
        module.hash_partitions(beyond, empty, empty, 0, 1, None, 3, -1, result)
