"""CRC-32C without the crc32c package's imports."""

import subprocess
import sys

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import law

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
