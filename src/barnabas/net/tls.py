"""TLS of the standard library on non-blocking sockets."""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from barnabas.wire.schema import Buffer


@dataclass(slots=True, frozen=True)
class TlsContext:
    """The SSL context of connections. It decides whether host names are verified."""

    context: ssl.SSLContext


@dataclass(slots=True, frozen=True, kw_only=True)
class TlsSettings:
    """Trusted certificates, own certificate and key: each as a file or as PEM text."""

    ca_file: str | None = None
    ca_pem: str | None = None
    certificate_file: str | None = None
    certificate_pem: str | None = None
    key_file: str | None = None
    key_pem: str | None = None
    key_password: str | None = None
    verify_certificates: bool = True
    verify_host: bool = True
    cipher_suites: str | None = None
    versions: tuple[str, ...] = ()  # such as ("TLSv1.3",); empty: the library's defaults
    revocation_list_file: str | None = None

    def context(self) -> ssl.SSLContext:
        """Returns a client's context. Raises OSError or ssl.SSLError if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify_host and self.verify_certificates
        context.verify_mode = ssl.CERT_REQUIRED if self.verify_certificates else ssl.CERT_NONE
        if self.ca_file or self.ca_pem:
            self._load_authorities(context)
        else:
            context.load_default_certs()
        if self.revocation_list_file:
            context.load_verify_locations(self.revocation_list_file)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if self.cipher_suites:
            context.set_ciphers(self.cipher_suites)
        if self.versions:
            versions = [ssl.TLSVersion[name.replace(".", "_")] for name in self.versions]
            context.minimum_version, context.maximum_version = min(versions), max(versions)
        if self.certificate_file or self.certificate_pem:
            self._load_own(context)
        return context

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        is_directory = self.ca_file is not None and Path(self.ca_file).is_dir()
        context.load_verify_locations(
            cafile=None if is_directory else self.ca_file,
            capath=self.ca_file if is_directory else None,
            cadata=self.ca_pem,
        )

    def _load_own(self, context: ssl.SSLContext) -> None:
        """OpenSSL reads certificate and key from files only: PEM texts go to temporary files."""
        import tempfile  # slow to import, and few connections need it

        with tempfile.TemporaryDirectory() as directory:
            certificate = _as_file(
                directory, "certificate", self.certificate_file, self.certificate_pem
            )
            key = _as_file(directory, "key", self.key_file, self.key_pem)
            assert certificate is not None, "called only with a certificate"
            # Without a password OpenSSL would prompt on the terminal.
            context.load_cert_chain(certificate, key, self.key_password or "")


def _as_file(directory: str, name: str, path: str | None, pem: str | None) -> str | None:
    if pem is None:
        return path
    target = Path(directory, name)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(pem)
    return str(target)


class TlsHandshake:
    """A TLS handshake on a connected socket.

    Calls `on_done` or `on_failed` once, in a later turn of the loop.
    """

    __slots__ = ("_loop", "_on_done", "_on_failed", "_socket")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        tls: TlsContext,
        host: str,
        on_done: "Callable[[TlsSocket], None]",
        on_failed: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._on_done = on_done
        self._on_failed = on_failed
        self._socket = tls.context.wrap_socket(
            sock, do_handshake_on_connect=False, server_hostname=host
        )
        loop.call_soon(self._step)

    def cancel(self) -> None:
        """Abandons the handshake."""
        self._stop_waiting()
        self._socket.close()

    def _step(self) -> None:
        if self._socket.fileno() < 0:
            return
        self._stop_waiting()
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.add_reader(self._socket, self._step)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(self._socket, self._step)
        except OSError as failure:
            self._socket.close()
            self._on_failed(_explain(failure))
        else:
            self._on_done(TlsSocket(self._socket))

    def _stop_waiting(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)


class TlsSocket:
    """An encrypted socket that a `FrameTransport` can use like a plain one."""

    __slots__ = ("_socket",)

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def sendmsg(self, parts: Sequence[Buffer]) -> int:
        """Sends what the socket takes. Raises BlockingIOError if that is nothing."""
        sent = 0
        try:
            for part in parts:
                begin = 0
                while begin < len(part):
                    count = self._socket.send(memoryview(part)[begin:])
                    begin += count
                    sent += count
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not sent:
                raise BlockingIOError from None
        return sent

    def recv_into(self, view: memoryview) -> int:
        """Fills a view as far as possible: one TLS record has at most 16 KiB."""
        received = 0
        try:
            while received < len(view):
                count = self._socket.recv_into(view[received:])
                if not count:
                    break
                received += count
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not received:
                raise BlockingIOError from None
        return received

    def pending(self) -> int:
        """Bytes that are already decrypted, for which the loop gets no event."""
        return self._socket.pending()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()


def _explain(failure: OSError) -> OSError:
    """Returns OpenSSL's error in an operator's words."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return ssl.SSLError(errno.EPROTO, f"the certificate is not valid: {failure.verify_message}")
    if isinstance(failure, ConnectionError | ssl.SSLEOFError):
        return ssl.SSLError(
            errno.EPROTO, "disconnected during the TLS handshake: does it expect plain text?"
        )
    if isinstance(failure, ssl.SSLError):
        reason = (failure.reason or str(failure)).replace("_", " ").lower()
        return ssl.SSLError(errno.EPROTO, f"TLS handshake failed: {reason}")
    return failure
