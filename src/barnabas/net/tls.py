"""The settings of TLS, and the contexts of the ssl module that they make."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from barnabas.net.cipher_suites import TLS_1_3_SUITES, is_standard_name, openssl_name

ClientAuth = Literal["none", "requested", "required"]

VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_EXCLUSIONS = {
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
}
"""Options for versions that are left out between others."""

_VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@dataclass(slots=True)
class TlsContext:
    """The SSL context of the connections to a listener. New connections use the current one."""

    context: ssl.SSLContext


@dataclass(slots=True, frozen=True, kw_only=True)
class TlsSettings:
    """Trusted certificates, own certificate and key: each as a file or as PEM text."""

    ca_file: str | None = None
    ca_pem: str | None = None
    certificate_file: str | None = None
    certificate_pem: str | None = None
    key_file: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    verify_certificates: bool = True
    verify_host: bool = True
    cipher_suites: tuple[str, ...] = ()  # Java's names or OpenSSL's; empty: the library's defaults
    versions: tuple[str, ...] = ()  # such as ("TLSv1.3",); empty: the library's defaults
    revocation_list_file: str | None = None

    def client_context(self) -> ssl.SSLContext:
        """Raises OSError if a file cannot be used, ValueError for an unknown version or suite."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify_host and self.verify_certificates
        context.verify_mode = ssl.CERT_REQUIRED if self.verify_certificates else ssl.CERT_NONE
        self._configure(context)
        return context

    def server_context(self, client_auth: ClientAuth = "none") -> ssl.SSLContext:
        """Raises OSError if a file cannot be used, ValueError for an unknown version or suite."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION
        self._configure(context)
        context.verify_mode = _VERIFY_MODES[client_auth]
        return context

    def _configure(self, context: ssl.SSLContext) -> None:
        if self.ca_file or self.ca_pem:
            self._load_authorities(context)
        else:
            context.load_default_certs()
        if self.revocation_list_file:
            context.load_verify_locations(self.revocation_list_file)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        versions = list(self.versions)
        if self.cipher_suites:
            versions = _set_cipher_suites(context, self.cipher_suites, versions)
        if versions:
            _set_versions(context, versions)
        if self.certificate_file or self.certificate_pem:
            self._load_own(context)

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        is_directory = self.ca_file is not None and Path(self.ca_file).is_dir()
        context.load_verify_locations(
            cafile=None if is_directory else self.ca_file,
            capath=self.ca_file if is_directory else None,
            cadata=self.ca_pem,
        )
        # As in Java, every trusted certificate ends a chain, also one that is not self-signed.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN

    def _load_own(self, context: ssl.SSLContext) -> None:
        with (
            _as_file(self.certificate_file, self.certificate_pem) as certificate,
            _as_file(self.key_file, self.key_pem) as key,
        ):
            assert certificate is not None, "called only with a certificate"
            # Without a password OpenSSL would prompt on the terminal.
            context.load_cert_chain(certificate, key, self.key_password or "")


@contextmanager
def _as_file(path: str | None, pem: str | None) -> Iterator[str | None]:
    """OpenSSL reads certificate and key from files only: a text becomes a file in memory."""
    if pem is None:
        yield path
        return
    fd = os.memfd_create("barnabas-tls")
    try:
        os.write(fd, pem.encode())
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def _set_versions(context: ssl.SSLContext, names: list[str]) -> None:
    for name in names:
        if name not in VERSIONS:
            raise ValueError(f"{name} is not one of {', '.join(VERSIONS)}")
    versions = [VERSIONS[name] for name in names]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    for name, option in _EXCLUSIONS.items():
        if name not in names and min(versions) < VERSIONS[name] < max(versions):
            context.options |= option


def _set_cipher_suites(
    context: ssl.SSLContext, suites: tuple[str, ...], versions: list[str]
) -> list[str]:
    """Returns the versions that the suites allow.

    As in Java, TLS 1.3 needs one of its own suites in the list, and earlier versions one of
    theirs. OpenSSL's names do not concern TLS 1.3.
    """
    earlier = [openssl_name(suite) for suite in suites if suite not in TLS_1_3_SUITES]
    if earlier:
        try:
            context.set_ciphers(":".join(earlier))
        except ssl.SSLError:
            raise ValueError(f"none of {', '.join(suites)} is a cipher suite") from None
    if not any(map(is_standard_name, suites)):
        return versions
    allows = {"TLSv1.3": len(earlier) < len(suites)}
    allowed = [
        version
        for version in versions or ("TLSv1.2", "TLSv1.3")
        if allows.get(version, bool(earlier))
    ]
    if not allowed:
        raise ValueError(
            f"{', '.join(suites)} are no cipher suites of the enabled protocols "
            f"{', '.join(versions)}"
        )
    return allowed
