"""GSSAPI on the client's side (RFC 4752): a login with Kerberos."""

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any

from barnabas.net.kerberos import SECURITY_LAYER_NONE, KerberosMissing, load_gssapi
from barnabas.net.sasl import AuthenticationFailed, SaslExchange

_CHOICE = bytes([SECURITY_LAYER_NONE, 0, 0, 0])


@dataclass(slots=True, frozen=True)
class KerberosLogin:
    """Who logs in, to which service.

    Without a keytab, the tickets of the default cache are used, as `kinit` writes them.
    """

    service: str
    principal: str | None = None
    keytab: str | None = None

    async def exchange(self, host: str) -> SaslExchange:
        """Gets a ticket for the host. Raises AuthenticationFailed if there is none."""
        try:
            gssapi = load_gssapi()
        except KerberosMissing as error:
            raise AuthenticationFailed(None, str(error)) from None
        try:
            # This asks the key distribution center, so it may take long.
            context, token = await asyncio.to_thread(self._initiate, gssapi, host)
        except gssapi.exceptions.GSSError as error:
            raise AuthenticationFailed(None, f"no Kerberos ticket: {error.gen_message()}") from None
        return _continue(context, token, gssapi.exceptions.GSSError)

    def _initiate(self, gssapi: Any, host: str) -> tuple[Any, bytes]:
        target = gssapi.Name(f"{self.service}@{host}", gssapi.NameType.hostbased_service)
        credentials = None
        if self.keytab is not None:
            name = (
                gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
                if self.principal
                else None
            )
            cache = hashlib.sha256(f"{self.principal} {self.keytab}".encode()).hexdigest()
            store = {"client_keytab": self.keytab, "ccache": f"MEMORY:barnabas-{cache}"}
            credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
        context = gssapi.SecurityContext(
            name=target,
            creds=credentials,
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=[gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity],
        )
        return context, context.step()


def _continue(context: Any, token: bytes, error_type: type[Exception]) -> SaslExchange:
    try:
        challenge = yield token
        while not context.complete:
            challenge = yield context.step(challenge) or b""
        offer: bytes = context.unwrap(challenge).message
        if len(offer) < 4 or not offer[0] & SECURITY_LAYER_NONE:
            raise AuthenticationFailed(None, "the broker requires a security layer")
        yield context.wrap(_CHOICE, False).message
    except error_type as error:
        raise AuthenticationFailed(None, f"the broker's Kerberos token is wrong: {error}") from None
