"""Fetches OAuth tokens with the client credentials grant (RFC 6749, section 4.4)."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

_TIMEOUT_S = 10
_MAX_RESPONSE_BYTES = 1 << 20


@dataclass(slots=True, frozen=True)
class ClientCredentials:
    """The token endpoint, and how to authenticate there."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None

    def fetch(self) -> tuple[str, float]:
        """Returns a token, and when it expires in seconds since the epoch. It blocks.

        Raises OSError, or ValueError or KeyError if the response is malformed.
        """
        from urllib.parse import urlencode
        from urllib.request import Request, urlopen

        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        credentials = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        request = Request(
            self.url,
            data=urlencode(form).encode(),
            headers={"Accept": "application/json", "Authorization": f"Basic {credentials}"},
        )
        with urlopen(request, timeout=_TIMEOUT_S) as response:
            token: str = json.loads(response.read(_MAX_RESPONSE_BYTES))["access_token"]
        return token, float(claims_of(token)["exp"])


def claims_of(token: str) -> dict[str, Any]:
    """Returns the claims of a JWT, without any check. Raises ValueError or IndexError."""
    body = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims
