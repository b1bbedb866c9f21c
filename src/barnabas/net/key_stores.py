"""Key stores: PEM, PKCS12 and JKS files become private keys with their chains, and certificates.

`cryptography` is imported only for what needs it: PKCS12, and encrypted keys.
"""

import base64
import math
import re
import ssl
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.net import jks

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"
TYPES: Final = (JKS, PKCS12, PEM)

_PEM_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,64})-----")
_DER_SEQUENCE: Final = 0x30
_DER_INTEGER: Final = 0x02
_MAX_DEPTH: Final = 8
_MAX_ITERATIONS: Final = 5_000_000
"""As in Java."""

_SCRYPT: Final = bytes.fromhex("06092b06010401da47040b")
_SCRYPT_BYTES: Final = 128
_MAX_SCRYPT_BYTES: Final = 32 << 20
"""As in OpenSSL; Java cannot read such keys."""

_LINE_BYTES: Final = 64
_MAX_FILE_BYTES: Final = 16 << 20


class KeyStoreError(ValueError):
    """A key store cannot be read. The message says why, and not which store it is."""


@dataclass(slots=True, frozen=True)
class KeyEntry:
    """A private key, and the certificates from its own to that of its authority, in DER."""

    key_pem: str = field(repr=False)  # not encrypted
    chain: tuple[bytes, ...]


@dataclass(slots=True, frozen=True)
class KeyStore:
    """The content of a store. In a trust store only `certificates` count."""

    keys: tuple[KeyEntry, ...] = ()
    certificates: tuple[bytes, ...] = ()  # without private keys, in DER


def read_key_store(
    path: str, kind: str | None, password: str | None, key_password: str | None = None
) -> KeyStore:
    """Reads a store. Its content shows its type; PEM and the others must not be mixed up.

    Like Java's, the types JKS and PKCS12 accept each other's files. Raises KeyStoreError.
    """
    content = _read(path)
    actual = _type_of(content)
    if kind is not None and (kind.upper() == PEM) != (actual == PEM):
        raise KeyStoreError(f"it is a {actual} file, and its type is set to {kind}")
    if actual == PEM:
        return read_pem(content.decode("utf-8", "replace"), key_password)
    if actual == JKS:
        return _read_jks(content, password, key_password)
    return _read_pkcs12(content, password)


def read_pem(text: str, key_password: str | None = None) -> KeyStore:
    """Reads the blocks of a PEM text: at most one private key, whose certificates come in order.

    Other text, and blocks of other types, are skipped.
    """
    keys: list[str] = []
    certificates: list[bytes] = []
    for label, body in _pem_blocks(text):
        if label in ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"):
            certificates.append(_decode(body, "certificate"))
        elif label.endswith("PRIVATE KEY"):
            keys.append(_read_pem_key(label, body, key_password))
    if len(keys) > 1:
        raise KeyStoreError(f"it has {len(keys)} private keys, and may have one")
    if keys:
        return KeyStore(keys=(KeyEntry(keys[0], tuple(certificates)),))
    return KeyStore(certificates=tuple(certificates))


def _pem_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yields labels and bodies. A block without an end is an error, not a longer search."""
    begin = _PEM_BEGIN.search(text)
    while begin is not None:
        label = begin[1]
        footer = f"-----END {label}-----"
        end = text.find(footer, begin.end())
        if end < 0:
            raise KeyStoreError(f"a block {label} in it has no end")
        yield label, text[begin.end() : end]
        begin = _PEM_BEGIN.search(text, end + len(footer))


def to_pem(certificates: tuple[bytes, ...]) -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates))


def detect_type(path: str) -> str:
    """Returns the type that the content of a file shows. Raises KeyStoreError."""
    return _type_of(_read(path))


def _read(path: str) -> bytes:
    if "\0" in path:
        raise KeyStoreError("its name has a NUL character")
    try:
        is_file = stat.S_ISREG(Path(path).stat().st_mode)
        content = _read_limited(path) if is_file else b""
    except OSError as error:
        raise KeyStoreError(f"it cannot be read: {error.strerror}") from None
    if not is_file:
        raise KeyStoreError("it is not a file")  # a device or a pipe may never end
    if len(content) > _MAX_FILE_BYTES:
        raise KeyStoreError(f"it has more than {_MAX_FILE_BYTES} bytes")
    return content


def _read_limited(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(_MAX_FILE_BYTES + 1)


def _type_of(content: bytes) -> str:
    if content.startswith(jks.MAGIC):
        return JKS
    return PKCS12 if content[:1] == bytes([_DER_SEQUENCE]) else PEM


def _read_pem_key(label: str, body: str, password: str | None) -> str:
    is_old_style = "Proc-Type: 4,ENCRYPTED" in body
    if not is_old_style and not label.startswith("ENCRYPTED"):
        return _to_pem(label, _decode(body, "private key"))
    if password is None:
        raise KeyStoreError("its private key is encrypted and needs ssl.key.password")
    if not is_old_style:
        _require_few_iterations(_decode(body, "private key"))
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem = (
        f"-----BEGIN {label}-----{body}-----END {label}-----\n"
        if is_old_style
        else _to_pem(label, _decode(body, "private key"))
    )
    try:
        return _key_pem(load_pem_private_key(pem.encode(), password.encode()))
    except ValueError:
        raise KeyStoreError("ssl.key.password is wrong, or its private key is damaged") from None


def _require_few_iterations(encrypted: bytes) -> None:
    """Raises KeyStoreError if it takes minutes, or much memory, to derive the key of a password.

    The numbers are in the algorithm's parameters, and `cryptography` holds the GIL meanwhile.
    """
    try:
        _, outer, _ = jks.read_der_value(encrypted, 0)
        _, algorithm, _ = jks.read_der_value(outer, 0)
        numbers = list(_integers(algorithm, _MAX_DEPTH))
    except (IndexError, jks.JksError):
        raise KeyStoreError("its private key is damaged") from None
    largest = max(numbers, default=0)
    if largest > _MAX_ITERATIONS:
        raise KeyStoreError(
            f"its private key is encrypted with {largest} iterations, and may have "
            f"{_MAX_ITERATIONS}"
        )
    # The cost, the size of a block and the parallelism come first.
    if _SCRYPT in algorithm and _SCRYPT_BYTES * math.prod(numbers[:3]) > _MAX_SCRYPT_BYTES:
        raise KeyStoreError(
            f"its private key is encrypted with scrypt, which may use {_MAX_SCRYPT_BYTES} bytes"
        )


def _integers(content: bytes, depth: int) -> Iterator[int]:
    """Yields the integers in DER values, and in sequences of them."""
    position = 0
    while position < len(content):
        tag, value, position = jks.read_der_value(content, position)
        if tag == _DER_INTEGER:
            yield int.from_bytes(value)
        elif tag == _DER_SEQUENCE and depth:
            yield from _integers(value, depth - 1)


def _decode(body: str, what: str) -> bytes:
    """Texts in properties files may have lost their line breaks: whitespace does not count."""
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except ValueError:
        raise KeyStoreError(f"a {what} in it is damaged") from None


def _read_jks(content: bytes, password: str | None, key_password: str | None) -> KeyStore:
    try:
        entries = jks.read_jks(content, password, key_password)
    except jks.JksError as error:
        raise KeyStoreError(str(error)) from None
    return KeyStore(
        keys=tuple(
            KeyEntry(_to_pem("PRIVATE KEY", entry.key), entry.chain)
            for entry in entries
            if entry.key is not None
        ),
        certificates=tuple(entry.chain[0] for entry in entries if entry.key is None),
    )


def _read_pkcs12(content: bytes, password: str | None) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store = load_pkcs12(content, None if password is None else password.encode())
    except ValueError:
        reason = "needs a password" if password is None else "has another password"
        raise KeyStoreError(f"it {reason}, or is damaged") from None
    others = [item.certificate for item in store.additional_certs]
    if store.key is None or store.cert is None:
        certificates = others if store.cert is None else [store.cert.certificate, *others]
        return KeyStore(
            certificates=tuple(item.public_bytes(Encoding.DER) for item in certificates)
        )
    chain = _chain_of(store.cert.certificate, others)
    return KeyStore(
        keys=(
            KeyEntry(_key_pem(store.key), tuple(item.public_bytes(Encoding.DER) for item in chain)),
        ),
        certificates=tuple(item.public_bytes(Encoding.DER) for item in others if item not in chain),
    )


def _chain_of(leaf: "Certificate", others: "list[Certificate]") -> "list[Certificate]":
    """Orders the certificates by issuer, from the leaf on. PKCS12 files do not."""
    chain = [leaf]
    by_subject = {item.subject: item for item in others}
    while chain[-1].issuer != chain[-1].subject:
        issuer = by_subject.pop(chain[-1].issuer, None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _key_pem(key: "PrivateKeyTypes") -> str:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _to_pem(label: str, content: bytes) -> str:
    encoded = base64.b64encode(content).decode()
    lines = [encoded[at : at + _LINE_BYTES] for at in range(0, len(encoded), _LINE_BYTES)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
