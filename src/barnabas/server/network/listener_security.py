"""How the connections of a listener are secured."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.config.addresses import SecurityProtocol

if TYPE_CHECKING:
    from barnabas.security.authentication.sasl_server import SaslServer
    from barnabas.security.tls.listener_tls import ListenerTls


@dataclass(slots=True, frozen=True)
class ListenerSecurity:
    """The protocol of a listener, with its TLS and SASL if it has them."""

    protocol: SecurityProtocol
    tls: "ListenerTls | None" = None
    sasl: "SaslServer | None" = None

    def close(self) -> None:
        if self.sasl is not None:
            self.sasl.close()


PLAINTEXT = ListenerSecurity(SecurityProtocol.PLAINTEXT)
