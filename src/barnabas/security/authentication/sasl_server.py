"""The SASL mechanisms of one listener."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.security.authentication.exchange import Login, ServerExchange


@dataclass(slots=True, frozen=True)
class SaslMechanism:
    """A mechanism that is enabled."""

    start: Callable[[], ServerExchange]
    max_session_ms: int = 0  # connections.max.reauth.ms; 0: no limit


class SaslServer:
    """Starts exchanges with clients, and says how long their sessions last."""

    def __init__(
        self,
        mechanisms: Mapping[str, SaslMechanism],
        *,
        max_receive_bytes: int = 524_288,
        failure_delay_ms: int = 100,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._mechanisms = dict(mechanisms)
        self.max_receive_bytes = max_receive_bytes
        """The largest frame of a client that is not authenticated."""
        self.failure_delay_ms = failure_delay_ms
        """How long the response to wrong credentials is delayed."""
        self.close = on_close
        """Stops what the mechanisms run in the background."""

    @property
    def enabled(self) -> list[str]:
        return list(self._mechanisms)

    def start(self, mechanism: str) -> ServerExchange | None:
        """Returns a new exchange, or None if the mechanism is not enabled."""
        enabled = self._mechanisms.get(mechanism)
        return None if enabled is None else enabled.start()

    def session_lifetime_ms(self, mechanism: str, login: Login, now_ms: int) -> int | None:
        """Returns after how long the client must re-authenticate, or None if it need not."""
        limits = []
        if self._mechanisms[mechanism].max_session_ms > 0:
            limits.append(self._mechanisms[mechanism].max_session_ms)
        if login.expires_ms is not None:
            limits.append(max(0, login.expires_ms - now_ms))
        return min(limits, default=None)
