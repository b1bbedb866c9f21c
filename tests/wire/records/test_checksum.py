"""CRC-32C by itself, without the package around it."""

import subprocess
import sys

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import law

from barnabas.wire.records.checksum import crc32c


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@law
@given(st.binary(max_size=500))
def test_any_buffer_has_the_checksum_the_package_gives_it(content: bytes) -> None:
    expected = package.crc32c(content)
    for buffer in (content, bytearray(content), memoryview(b"." + content)[1:]):
        assert crc32c(buffer) == expected


def test_no_codec_nor_the_package_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, barnabas.wire.records.arrow, barnabas.wire.records.validate\n"
        "dear = {'crc32c', 'lz4', 'zstandard', 'cramjam', 'pyarrow'}\n"
        "print(sorted(dear & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
