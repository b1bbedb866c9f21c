"""TLS by the standard library, on sockets that never block."""

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
class Tls:
    """What both ends must prove. A host's name is checked if the context says so."""

    context: ssl.SSLContext


@dataclass(slots=True, frozen=True, kw_only=True)
class Trust:
    """Whose certificates count, and our own: each as a file or as PEM text."""

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
    versions: tuple[str, ...] = ()  # as in ("TLSv1.3",); none: those that the library takes
    revoked_file: str | None = None  # certificates that no longer count

    def context(self) -> ssl.SSLContext:
        """A client's context; OSError or ssl.SSLError if a file is missing or makes no sense."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify_host and self.verify_certificates
        context.verify_mode = ssl.CERT_REQUIRED if self.verify_certificates else ssl.CERT_NONE
        if self.ca_file or self.ca_pem:
            self._load_authorities(context)
        else:
            context.load_default_certs()
        if self.revoked_file:
            context.load_verify_locations(self.revoked_file)
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
        """OpenSSL reads our certificate and key from files alone: texts are lent one."""
        import tempfile  # takes long to load, and few connections need it

        with tempfile.TemporaryDirectory() as directory:
            certificate = _as_file(
                directory, "certificate", self.certificate_file, self.certificate_pem
            )
            key = _as_file(directory, "key", self.key_file, self.key_pem)
            assert certificate is not None, "asked for only with a certificate"
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate, key, self.key_password or "")


def _as_file(directory: str, name: str, path: str | None, pem: str | None) -> str | None:
    if pem is None:
        return path
    lent = Path(directory, name)
    with os.fdopen(os.open(lent, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(pem)
    return str(lent)


class Handshake:
    """Agrees on keys over a connected socket. Calls `done` or `failed` once, in a later turn."""

    __slots__ = ("_done", "_failed", "_loop", "_socket")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        tls: Tls,
        host: str,
        done: "Callable[[TlsSocket], None]",
        failed: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._done = done
        self._failed = failed
        self._socket = tls.context.wrap_socket(
            sock, do_handshake_on_connect=False, server_hostname=host
        )
        loop.call_soon(self._step)

    def cancel(self) -> None:
        """Nobody wants the connection any more."""
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
            self._failed(_explained(failure))
        else:
            self._done(TlsSocket(self._socket))

    def _stop_waiting(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)


class TlsSocket:
    """An encrypted socket that a `Link` can use as it uses a plain one."""

    __slots__ = ("_socket",)

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def sendmsg(self, parts: Sequence[Buffer]) -> int:
        """Send what the socket takes; BlockingIOError if that is nothing."""
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
        """Fill a view as far as possible: a record of TLS brings no more than 16 KiB."""
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
        """Bytes that have been decrypted already, of which the loop knows nothing."""
        return self._socket.pending()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()


def _explained(failure: OSError) -> OSError:
    """OpenSSL's reasons, as an operator would put them."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return ssl.SSLError(errno.EPROTO, f"its certificate is not valid: {failure.verify_message}")
    if isinstance(failure, ConnectionError | ssl.SSLEOFError):
        return ssl.SSLError(errno.EPROTO, "hung up on a TLS handshake: does it expect plain text?")
    if isinstance(failure, ssl.SSLError):
        reason = (failure.reason or str(failure)).replace("_", " ").lower()
        return ssl.SSLError(errno.EPROTO, f"TLS handshake failed: {reason}")
    return failure
