"""GSSAPI (RFC 4752): the client proves who it is with a Kerberos ticket.

The tokens of the security context come first. Then the server offers its security layers, of which
it has none, and the client chooses: a wrapped message of four bytes each.

The calls of the library may read the keytab and write a replay cache: they run in a thread.
"""

import asyncio
from enum import Enum, auto
from pathlib import Path
from typing import Any

from barnabas.net.kerberos import SECURITY_LAYER_NONE, KerberosMissing, load_gssapi
from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.exchange import (
    ConnectionAborted,
    Login,
    LoginFailed,
    quoted,
)
from barnabas.security.authentication.kerberos_names import LocalNameRules, NoLocalName
from barnabas.security.principal import USER, KafkaPrincipal

_MAX_MESSAGE_BYTES = 65_536
_OFFER = bytes([SECURITY_LAYER_NONE]) + _MAX_MESSAGE_BYTES.to_bytes(3, "big")
_MESSAGE = "Authentication failed with SASL mechanism GSSAPI: the credentials are not valid."

_KRB5_ERROR_BASE = -1765328384
_RETRIABLE_ERRORS = {_KRB5_ERROR_BASE + code for code in (21, 33, 34)}
"""A ticket that is not valid yet, a clock skew, a replay: the client may succeed next time."""


class KerberosAcceptor:
    """The credentials of this server: the key of its service principal."""

    def __init__(self, principal: str, keytab: str | None, rules: list[str]) -> None:
        """Raises SaslConfigError."""
        try:
            self._gssapi = load_gssapi()
        except KerberosMissing as error:
            raise SaslConfigError(f"{error}.") from None
        realm = principal.rpartition("@")[2] if "@" in principal else ""
        try:
            self.rules = LocalNameRules(rules, realm)
        except ValueError as error:
            raise SaslConfigError(f"sasl.kerberos.principal.to.local.rules: {error}.") from None
        if keytab is not None and not Path(keytab).is_file():
            raise SaslConfigError(f"The keytab {keytab} of GSSAPI does not exist.")
        try:
            name = self._gssapi.Name(principal, self._gssapi.NameType.kerberos_principal)
            self._credentials = self._gssapi.Credentials(
                name=name,
                usage="accept",
                mechs=[self._gssapi.MechType.kerberos],  # no negotiation of others
                store={"keytab": keytab} if keytab else None,
            )
        except self._gssapi.exceptions.GSSError as error:
            raise SaslConfigError(
                f"The key of {principal} for GSSAPI cannot be used: {error.gen_message()}."
            ) from None

    def start(self) -> "GssapiExchange":
        context = self._gssapi.SecurityContext(creds=self._credentials, usage="accept")
        return GssapiExchange(context, self.rules, self._gssapi.exceptions.GSSError)


class _State(Enum):
    CONTEXT = auto()
    OFFER = auto()
    CHOICE = auto()
    ENDED = auto()


class GssapiExchange:
    """One security context, then the choice of a security layer."""

    def __init__(self, context: Any, rules: LocalNameRules, error_type: type[Exception]) -> None:
        self._context = context
        self._rules = rules
        self._error_type = error_type
        self._state = _State.CONTEXT
        self.login: Login | None = None

    async def evaluate(self, message: bytes) -> bytes:
        state, self._state = self._state, _State.ENDED
        try:
            return await asyncio.to_thread(self._evaluate, state, message)
        except self._error_type as error:
            raise _failure_of(error) from None

    def _evaluate(self, state: _State, message: bytes) -> bytes:
        match state:
            case _State.CONTEXT:
                return self._on_context_token(message)
            case _State.OFFER:
                if message:
                    raise LoginFailed(_MESSAGE, "a message where none is expected")
                return self._offer()
            case _State.CHOICE:
                return self._on_choice(message)
            case _State.ENDED:
                raise LoginFailed(_MESSAGE, "a message after the last one")

    def _on_context_token(self, token: bytes) -> bytes:
        response: bytes = self._context.step(token) or b""
        if not self._context.complete:
            self._state = _State.CONTEXT
            return response
        if not response:
            return self._offer()
        self._state = _State.OFFER
        return response

    def _offer(self) -> bytes:
        self._state = _State.CHOICE
        wrapped: bytes = self._context.wrap(_OFFER, False).message
        return wrapped

    def _on_choice(self, message: bytes) -> bytes:
        choice: bytes = self._context.unwrap(message).message
        if len(choice) < 4 or choice[0] != SECURITY_LAYER_NONE:
            raise LoginFailed(_MESSAGE, "the client asks for a security layer")
        principal = str(self._context.initiator_name)
        try:
            user = self._rules.local_name(principal)
        except NoLocalName as error:
            raise LoginFailed(_MESSAGE, str(error)) from None
        self.login = Login(KafkaPrincipal(USER, user))
        return b""


def _failure_of(error: Any) -> LoginFailed:
    reason = quoted(str(error))
    if getattr(error, "min_code", 0) in _signed_and_unsigned(_RETRIABLE_ERRORS):
        return ConnectionAborted(_MESSAGE, reason)
    return LoginFailed(_MESSAGE, reason)


def _signed_and_unsigned(codes: set[int]) -> set[int]:
    return codes | {code & 0xFFFFFFFF for code in codes}
