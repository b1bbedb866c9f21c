"""Key stores in PEM, PKCS12 and JKS: what is in them, and why one cannot be read."""

import base64
import re
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st
from tests.tls_certificates import PASSWORD, Issued, castle_authority, has_keytool

from barnabas.net.jks import JksError, read_jks
from barnabas.net.key_stores import (
    JKS,
    PEM,
    PKCS12,
    KeyStoreError,
    detect_type,
    read_key_store,
    read_pem,
    to_pem,
)

SAMPLE = Path(__file__).parent / "certificates" / "sample.jks"
STORE_PASSWORD, KEY_PASSWORD = "storepass", "keypass1"

needs_keytool = pytest.mark.skipif(not has_keytool(), reason="needs Java's keytool")


@pytest.fixture(scope="module")
def issued() -> Issued:
    return castle_authority().issue("CN=server,O=Castle")


def der(issued: Issued) -> bytes:
    return issued.certificate.public_bytes(Encoding.DER)


def authority_der() -> bytes:
    return castle_authority().certificate.public_bytes(Encoding.DER)


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_pem_file_has_a_key_and_its_chain(
    issued: Issued, tmp_path: Path, encrypted: bool
) -> None:
    path = issued.write_pem(tmp_path, "server", encrypted=encrypted)
    (entry,) = read_key_store(path, PEM, None, PASSWORD).keys
    assert entry.chain == (der(issued),)
    assert load_pem_private_key(entry.key_pem.encode(), None).private_numbers() == (
        issued.key.private_numbers()
    )


def test_a_pem_text_may_have_lost_its_line_breaks_and_gained_other_text(issued: Issued) -> None:
    text = f"Bag Attributes: x {issued.key_pem} and {issued.certificate_pem}".replace("\n", " ")
    (entry,) = read_pem(text).keys
    assert entry.key_pem == issued.key_pem
    assert to_pem(entry.chain) == issued.certificate_pem


def test_a_pem_text_without_a_key_has_certificates(issued: Issued) -> None:
    store = read_pem(castle_authority().pem + issued.certificate_pem)
    assert (store.keys, store.certificates) == ((), (authority_der(), der(issued)))


def test_a_pkcs12_file_has_the_key_and_the_chain_in_order(issued: Issued, tmp_path: Path) -> None:
    (entry,) = read_key_store(issued.write_pkcs12(tmp_path, "s"), PKCS12, PASSWORD).keys
    assert entry.chain == (der(issued), authority_der())
    assert entry.key_pem == issued.key_pem


def test_a_trust_store_in_pkcs12_has_certificates(tmp_path: Path) -> None:
    store = read_key_store(castle_authority().write_pkcs12(tmp_path), PKCS12, PASSWORD)
    assert (store.keys, store.certificates) == ((), (authority_der(),))


@pytest.mark.parametrize("kind", [JKS, PKCS12, None])
def test_the_types_jks_and_pkcs12_accept_each_others_files(kind: str | None) -> None:
    (entry,) = read_key_store(str(SAMPLE), kind, STORE_PASSWORD, KEY_PASSWORD).keys
    assert len(entry.chain) == 1
    load_pem_private_key(entry.key_pem.encode(), None)


@needs_keytool
def test_stores_of_keytool_are_read(issued: Issued, tmp_path: Path) -> None:
    (entry,) = read_key_store(issued.write_jks(tmp_path, "s"), JKS, PASSWORD).keys
    assert entry.chain == (der(issued), authority_der())
    assert entry.key_pem == issued.key_pem
    trusted = read_key_store(castle_authority().write_jks(tmp_path), JKS, PASSWORD)
    assert trusted.certificates == (authority_der(),)


@pytest.mark.parametrize(
    ("password", "key_password", "problem"),
    [
        ("wrong", None, "the password is wrong, or the file is damaged"),
        (STORE_PASSWORD, "wrong", "the password of the key server is wrong"),
        (STORE_PASSWORD, None, "the password of the key server is wrong"),
        (None, None, "the key server needs a password"),
    ],
)
def test_a_wrong_password_of_a_jks_file_is_named(
    password: str | None, key_password: str | None, problem: str
) -> None:
    with pytest.raises(KeyStoreError, match=problem):
        read_key_store(str(SAMPLE), JKS, password, key_password)


def test_a_jks_file_without_a_password_is_read_without_its_digest() -> None:
    damaged = SAMPLE.read_bytes()[:-1] + b"\0"
    assert len(read_jks(damaged, None, KEY_PASSWORD)) == 1
    with pytest.raises(JksError, match="damaged"):
        read_jks(damaged, STORE_PASSWORD, KEY_PASSWORD)


@given(st.integers(4, SAMPLE.stat().st_size - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_jks_file_is_an_error_and_nothing_else(position: int, noise: bytes) -> None:
    content = SAMPLE.read_bytes()
    damaged = content[:position] + noise + content[position + len(noise) :]
    if damaged == content:
        return
    with pytest.raises(JksError):
        read_jks(damaged, STORE_PASSWORD, KEY_PASSWORD)
    with suppress(JksError):
        read_jks(damaged, None, KEY_PASSWORD)


@pytest.mark.parametrize("size", [4, 20, 40, 100, 300])
def test_a_truncated_jks_file_is_an_error(size: int) -> None:
    with pytest.raises(JksError):
        read_jks(SAMPLE.read_bytes()[:size], None, KEY_PASSWORD)


def test_a_store_of_another_type_than_it_says_is_named(issued: Issued, tmp_path: Path) -> None:
    pem = issued.write_pem(tmp_path, "server")
    with pytest.raises(KeyStoreError, match="it is a PEM file, and its type is set to JKS"):
        read_key_store(pem, JKS, None)
    with pytest.raises(KeyStoreError, match="it is a JKS file, and its type is set to PEM"):
        read_key_store(str(SAMPLE), PEM, None)
    assert (detect_type(pem), detect_type(str(SAMPLE))) == (PEM, JKS)


@pytest.mark.parametrize(
    ("password", "problem"), [("no", "has another password"), (None, "needs a password")]
)
def test_a_pkcs12_file_with_another_password_is_an_error(
    issued: Issued, tmp_path: Path, password: str | None, problem: str
) -> None:
    with pytest.raises(KeyStoreError, match=problem):
        read_key_store(issued.write_pkcs12(tmp_path, "s"), PKCS12, password)


def test_an_encrypted_key_needs_its_password(issued: Issued) -> None:
    with pytest.raises(KeyStoreError, match=re.escape("needs ssl.key.password")):
        read_pem(issued.encrypted_key_pem)
    with pytest.raises(KeyStoreError, match=re.escape("ssl.key.password is wrong")):
        read_pem(issued.encrypted_key_pem, "no")


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/dev/zero", "it is not a file"), (".", "it is not a file"), ("a\0b", "a NUL character")],
)
def test_what_is_not_a_file_is_not_read(path: str, reason: str) -> None:
    """Who may change settings must not fill the memory of a node, or stop one of its threads."""
    with pytest.raises(KeyStoreError, match=reason):
        read_key_store(path, "JKS", None)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(KeyStoreError, match="more than 16777216 bytes"):
        read_key_store(str(large), "JKS", None)


def test_a_pem_block_without_an_end_is_an_error_at_once() -> None:
    text = "-----BEGIN CERTIFICATE-----\n" * 200_000
    with pytest.raises(KeyStoreError, match="CERTIFICATE in it has no end"):
        read_pem(text)


def der_value(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return bytes([tag, len(content)]) + content


def test_a_key_that_takes_minutes_to_decrypt_is_an_error_at_once() -> None:
    sequence, integer, octets = 0x30, 0x02, 0x04
    parameters = der_value(
        sequence, der_value(octets, b"salt"), der_value(integer, (2**31 - 1).to_bytes(4))
    )
    algorithm = der_value(
        sequence,
        der_value(6, b"x"),
        der_value(sequence, der_value(sequence, der_value(6, b"y"), parameters)),
    )
    for content, reason in (
        (
            der_value(sequence, algorithm, der_value(octets, b"key")),
            "encrypted with 2147483647 iterations",
        ),
        (der_value(sequence, algorithm)[:20], "is damaged"),
        (b"", "is damaged"),
    ):
        body = base64.b64encode(content).decode()
        label = "ENCRYPTED PRIVATE KEY"
        text = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
        with pytest.raises(KeyStoreError, match=reason):
            read_pem(text, PASSWORD)


def test_a_key_that_takes_gigabytes_to_decrypt_is_an_error_at_once() -> None:
    sequence, integer, octets = 0x30, 0x02, 0x04
    scrypt = der_value(6, bytes.fromhex("2b06010401da47040b"))
    numbers = (der_value(integer, number.to_bytes(3)) for number in (1 << 20, 8, 1))
    derivation = der_value(sequence, scrypt, der_value(sequence, der_value(octets), *numbers))
    algorithm = der_value(sequence, der_value(6, b"x"), der_value(sequence, derivation))
    body = base64.b64encode(der_value(sequence, algorithm, der_value(octets, b"key"))).decode()
    label = "ENCRYPTED PRIVATE KEY"
    text = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
    with pytest.raises(KeyStoreError, match="scrypt, which may use 33554432 bytes"):
        read_pem(text, PASSWORD)


def test_two_keys_in_one_text_are_an_error(issued: Issued) -> None:
    with pytest.raises(KeyStoreError, match="it has 2 private keys"):
        read_pem(issued.key_pem * 2)


def test_secrets_do_not_show(issued: Issued) -> None:
    store = read_pem(issued.key_pem + issued.certificate_pem)
    assert issued.key_pem.splitlines()[1] not in repr(store)
    (entry,) = read_jks(SAMPLE.read_bytes(), STORE_PASSWORD, KEY_PASSWORD)
    assert repr(entry) == "JksEntry('server', 1 certificates)"
