"""Certificates for tests, made when they are needed: authorities, servers, clients, bad ones.

An `Authority` issues certificates; an `Issued` writes itself as PEM, PKCS12 or JKS files.
"""

import datetime
import ipaddress
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

PASSWORD = "castle-password"
HOSTS = ("localhost", "127.0.0.1")
_DAY = datetime.timedelta(days=1)
_NAMES = {
    "CN": NameOID.COMMON_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "L": NameOID.LOCALITY_NAME,
    "C": NameOID.COUNTRY_NAME,
}


def has_keytool() -> bool:
    return shutil.which("keytool") is not None


def name_of(text: str) -> x509.Name:
    """Returns the name of a text like `CN=app,O=Castle`, which lists the last part first."""
    parts = [part.partition("=") for part in reversed(text.split(","))]
    return x509.Name([x509.NameAttribute(_NAMES[kind], value) for kind, _, value in parts])


@dataclass(frozen=True)
class Issued:
    """A certificate with its key, and the certificate of its authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    issuer: x509.Certificate

    @cached_property
    def certificate_pem(self) -> str:
        return pem_of(self.certificate)

    @cached_property
    def key_pem(self) -> str:
        return self._key_pem(NoEncryption())

    @cached_property
    def encrypted_key_pem(self) -> str:
        return self._key_pem(BestAvailableEncryption(PASSWORD.encode()))

    def write_pem(self, folder: Path, name: str, *, encrypted: bool = False) -> str:
        """Writes the key and the chain into one file. Returns its path."""
        path = folder / f"{name}.pem"
        key = self.encrypted_key_pem if encrypted else self.key_pem
        path.write_text(key + self.certificate_pem)
        return str(path)

    def write_pkcs12(self, folder: Path, name: str, password: str = PASSWORD) -> str:
        path = folder / f"{name}.p12"
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(),
                self.key,
                self.certificate,
                [self.issuer],
                BestAvailableEncryption(password.encode()),
            )
        )
        return str(path)

    def write_jks(self, folder: Path, name: str, password: str = PASSWORD) -> str:
        """Needs keytool."""
        source = self.write_pkcs12(folder, f"{name}-source", password)
        path = folder / f"{name}.jks"
        _keytool(
            *("-importkeystore", "-srckeystore", source, "-srcstoretype", "PKCS12"),
            *("-srcstorepass", password, "-destkeystore", str(path), "-deststoretype", "JKS"),
            *("-deststorepass", password),
        )
        return str(path)

    def _key_pem(self, encryption: KeySerializationEncryption) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "CN=Castle CA") -> None:
        self._name = name_of(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(
            self._name, self._key, _now() - _DAY, _now() + 3650 * _DAY, (), is_authority=True
        )

    @property
    def pem(self) -> str:
        return pem_of(self.certificate)

    def issue(
        self,
        name: str,
        hosts: tuple[str, ...] = HOSTS,
        *,
        days: int = 365,
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> Issued:
        """Issues a certificate that is valid for that many days from now; negative: it was."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        until = _now() + days * _DAY
        certificate = self._sign(name_of(name), key, min(_now(), until) - _DAY, until, hosts)
        return Issued(certificate, key, self.certificate)

    def write_pem(self, folder: Path, name: str = "ca") -> str:
        path = folder / f"{name}.pem"
        path.write_text(self.pem)
        return str(path)

    def write_pkcs12(self, folder: Path, name: str = "trust", password: str = PASSWORD) -> str:
        """Writes a trust store as Java does: with the attribute that makes its entry trusted."""
        path = folder / f"{name}.p12"
        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        path.write_bytes(
            pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))
        )
        return str(path)

    def write_jks(self, folder: Path, name: str = "trust", password: str = PASSWORD) -> str:
        """Needs keytool."""
        path = folder / f"{name}.jks"
        _keytool(
            *("-importcert", "-noprompt", "-alias", "ca", "-file", self.write_pem(folder, name)),
            *("-keystore", str(path), "-storetype", "JKS", "-storepass", password),
        )
        return str(path)

    def _sign(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        begin: datetime.datetime,
        end: datetime.datetime,
        hosts: tuple[str, ...],
        *,
        is_authority: bool = False,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if hosts:
            alternatives = [_alternative_name(host) for host in hosts]
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            )
        return builder.sign(self._key, hashes.SHA256())


@cache
def castle_authority() -> Authority:
    """The authority that servers and clients of a test trust."""
    return Authority()


def pem_of(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def _keytool(*arguments: str) -> None:
    subprocess.run(["keytool", *arguments], check=True, capture_output=True)
