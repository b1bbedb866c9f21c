"""Java's own key store format, JKS: its entries, the digest over the file, its private keys.

A file has a header, entries, and a SHA-1 digest over the password and all bytes before. A private
key is XORed with a key stream: each block is the SHA-1 of the password and the block before, and
the first block follows a random salt. A SHA-1 of the password and the plain key is its check.
"""

import hashlib
import hmac
from struct import Struct, error
from typing import Final, NamedTuple

MAGIC: Final = b"\xfe\xed\xfe\xed"

_KEY_ENTRY: Final = 1
_CERTIFICATE_ENTRY: Final = 2
_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"
"""Part of every JKS digest, by the format."""

_ALGORITHM_ID: Final = bytes.fromhex("2b060104012a02110101")
"""The object identifier of Sun's key protection, 1.3.6.1.4.1.42.2.17.1.1."""

_INT = Struct(">i")
_SHORT = Struct(">H")
_VERSIONS: Final = (1, 2)
_MAX_KEY_BYTES: Final = 1 << 16
"""A key of RSA with 16,384 bits has 10 KB."""

_TIMESTAMP_BYTES: Final = 8


class JksError(ValueError):
    """The store is damaged, or a password is wrong."""


class JksEntry(NamedTuple):
    """A private key (PKCS#8 in DER) with its chain, or a trusted certificate without a key."""

    alias: str
    key: bytes | None
    chain: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"JksEntry({self.alias!r}, {len(self.chain)} certificates)"


def read_jks(content: bytes, password: str | None, key_password: str | None) -> list[JksEntry]:
    """Returns the entries in the order of the file. Without a password the digest is not checked.

    Keys are decrypted with `key_password`, or else with `password`.
    """
    if password is not None:
        body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        expected = hashlib.sha1(_utf_16(password) + _WHITENER + body).digest()
        if not hmac.compare_digest(digest, expected):
            raise JksError("the password is wrong, or the file is damaged")
    try:
        return _Reader(content).read_entries(key_password or password)
    except (error, IndexError, UnicodeDecodeError):
        raise JksError("the file is damaged") from None


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content[:-_DIGEST_BYTES]
        self._position = len(MAGIC)

    def read_entries(self, key_password: str | None) -> list[JksEntry]:
        version = self._read_int()
        if version not in _VERSIONS:
            raise JksError(f"version {version} of the format is unknown")
        return [self._read_entry(version, key_password) for _ in range(self._read_int())]

    def _read_entry(self, version: int, key_password: str | None) -> JksEntry:
        kind = self._read_int()
        alias = self._read_text()
        self._take(_TIMESTAMP_BYTES)
        if kind == _CERTIFICATE_ENTRY:
            return JksEntry(alias, None, (self._read_certificate(version),))
        if kind != _KEY_ENTRY:
            raise JksError(f"entry {alias} has the unknown type {kind}")
        protected = self._take(self._read_int())
        chain = tuple(self._read_certificate(version) for _ in range(self._read_int()))
        if key_password is None:
            raise JksError(f"the key {alias} needs a password")
        return JksEntry(alias, _decrypt_key(alias, protected, key_password), chain)

    def _read_certificate(self, version: int) -> bytes:
        if version > 1:
            kind = self._read_text()
            if kind != "X.509":
                raise JksError(f"certificates of type {kind} are not supported")
        return self._take(self._read_int())

    def _read_text(self) -> str:
        (length,) = _SHORT.unpack(self._take(_SHORT.size))
        return self._take(length).decode()

    def _read_int(self) -> int:
        number: int = _INT.unpack(self._take(_INT.size))[0]
        return number

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0 or end > len(self._content):
            raise JksError("the file is damaged")
        taken = self._content[self._position : end]
        self._position = end
        return taken


def _decrypt_key(alias: str, protected: bytes, password: str) -> bytes:
    secret = _encrypted_octets(alias, protected)
    salt, encrypted, check = (
        secret[:_DIGEST_BYTES],
        secret[_DIGEST_BYTES:-_DIGEST_BYTES],
        secret[-_DIGEST_BYTES:],
    )
    encoded_password = _utf_16(password)
    stream, block = bytearray(), salt
    while len(stream) < len(encrypted):
        block = hashlib.sha1(encoded_password + block).digest()
        stream += block
    key = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(check, hashlib.sha1(encoded_password + key).digest()):
        raise JksError(f"the password of the key {alias} is wrong")
    return key


def _encrypted_octets(alias: str, protected: bytes) -> bytes:
    """Returns the content of EncryptedPrivateKeyInfo: the algorithm, then an octet string."""
    _, outer, _ = read_der_value(protected, 0)
    _, algorithm, end = read_der_value(outer, 0)
    _, identifier, _ = read_der_value(algorithm, 0)
    if identifier != _ALGORITHM_ID:
        raise JksError(f"the key {alias} is protected by an unknown algorithm")
    _, octets, _ = read_der_value(outer, end)
    if not 2 * _DIGEST_BYTES <= len(octets) <= _MAX_KEY_BYTES:
        raise JksError(f"the key {alias} is damaged")
    return octets


def read_der_value(content: bytes, position: int) -> tuple[int, bytes, int]:
    """Returns the tag and the content of a DER value, and the position after it."""
    tag, length = content[position], content[position + 1]
    position += 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(content[position : position + size])
        position += size
    end = position + length
    if end > len(content):
        raise JksError("a key is damaged")
    return tag, content[position:end], end


def _utf_16(password: str) -> bytes:
    return password.encode("utf-16-be")
