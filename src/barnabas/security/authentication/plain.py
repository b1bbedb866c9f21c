"""PLAIN (RFC 4616): user name and password as plain text. Use it with TLS."""

from barnabas.security.authentication.exchange import Login, LoginFailed, quoted
from barnabas.security.authentication.users import PasswordVerifier
from barnabas.security.principal import USER, KafkaPrincipal

_INVALID = "Authentication failed: the user name or the password is wrong."
_MALFORMED = "Authentication failed: the PLAIN message is malformed."


class PlainExchange:
    """One message: `[authorization id] NUL user NUL password`."""

    def __init__(self, verifier: PasswordVerifier) -> None:
        self._verifier = verifier
        self.login: Login | None = None

    async def evaluate(self, message: bytes) -> bytes:
        if self.login is not None:
            raise LoginFailed(_MALFORMED, "a second message")
        authorization_id, user, password = _parse(message)
        if authorization_id not in ("", user):
            raise LoginFailed(
                "Authentication failed: the authorization id must be empty or the user name.",
                f"user {quoted(user)} asked to be {quoted(authorization_id)}",
            )
        if not self._verifier.is_valid(user, password):
            problem = "has another password" if self._verifier.is_user(user) else "is unknown"
            raise LoginFailed(_INVALID, f"user {quoted(user)} {problem}")
        self.login = Login(KafkaPrincipal(USER, user))
        return b""


def _parse(message: bytes) -> tuple[str, str, str]:
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise LoginFailed(_MALFORMED, "it is not UTF-8") from None
    if len(parts) != 3:
        raise LoginFailed(_MALFORMED, f"it has {len(parts)} parts instead of 3")
    if not parts[1] or not parts[2]:
        raise LoginFailed(_MALFORMED, "the user name or the password is empty")
    return parts[0], parts[1], parts[2]
