"""CRC-32C without the crc32c package's imports."""

import random
import subprocess
import sys

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import law

from barnabas.wire.records import _checksum
from barnabas.wire.records.checksum import crc32c


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@law
@given(st.binary(max_size=500))
def test_any_buffer_has_the_checksum_of_the_package(content: bytes) -> None:
    expected = package.crc32c(content)
    for buffer in (content, bytearray(content), memoryview(b"." + content)[1:]):
        assert crc32c(buffer) == expected


def test_codecs_and_the_package_are_imported_lazily() -> None:
    code = (
        "import sys, barnabas.wire.records.arrow, barnabas.wire.records.validate\n"
        "dear = {'crc32c', 'lz4', 'zstandard', 'cramjam', 'pyarrow'}\n"
        "print(sorted(dear & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@law
@given(st.binary(max_size=100))
def test_tables_and_the_instruction_compute_the_checksum_of_the_package(content: bytes) -> None:
    assert _checksum.crc_by_table(content) == crc32c(content)
    assert _checksum.crc_of(content) == crc32c(content)


@pytest.mark.parametrize("size", [3071, 3072, 3073, 3080, 6143, 6144, 9300, 100_000])
def test_parts_computed_at_once_have_the_checksum_of_the_whole(size: int) -> None:
    content = random.Random(size).randbytes(size)
    assert _checksum.crc_of(content) == crc32c(content)
    assert _checksum.crc_by_table(content) == crc32c(content)
