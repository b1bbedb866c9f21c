"""Steps exchanges without a loop."""

from typing import Any

from barnabas.metadata.states import ScramCredential
from barnabas.security.authentication.exchange import ServerExchange
from barnabas.security.authentication.scram import TokenLogin
from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram_credentials import (
    ScramMechanismCode,
    derive_credential,
    salt_password,
)

SALT = b"pepper"


def step(exchange: ServerExchange, message: bytes) -> bytes:
    """Returns the response to a message; the exchange must not wait for anything."""
    coroutine: Any = exchange.evaluate(message)
    try:
        coroutine.send(None)
    except StopIteration as returned:
        response: bytes = returned.value
        return response
    raise AssertionError("the exchange waits")


def a_credential(
    mechanism: ScramMechanismCode, password: str, salt: bytes = SALT, iterations: int = 4096
) -> ScramCredential:
    salted = salt_password(mechanism, password.encode(), salt, iterations)
    return derive_credential(mechanism, salted, salt, iterations)


class KnownCredentials:
    """Credentials of the test: users, and tokens of alice that expire at 1,000."""

    def __init__(
        self,
        users: dict[str, ScramCredential] | None = None,
        tokens: dict[str, ScramCredential] | None = None,
    ) -> None:
        self.users = users or {}
        self._tokens = tokens or {}

    def of_user(self, user: str, _: ScramMechanismCode) -> ScramCredential | None:
        return self.users.get(user)

    async def of_token(self, token_id: str, _: ScramMechanismCode) -> TokenLogin | None:
        credential = self._tokens.get(token_id)
        owner = KafkaPrincipal("User", "alice")
        return None if credential is None else TokenLogin(credential, owner, 1_000)

    def of_nobody(self, user: str, mechanism: ScramMechanismCode) -> ScramCredential:
        return a_credential(mechanism, "nobody knows", user.encode())
