"""A bucket of tokens: bursts are allowed, and the average rate is bounded (KIP-599)."""

from barnabas.security.quotas.rate import RateWindow


class TokenBucket:
    """Starts full, and may be overdrawn by one request, whatever it takes.

    The capacity is what the rate fills in during the whole window.
    """

    __slots__ = ("_tokens", "_updated_ms", "_window")

    def __init__(self, window: RateWindow) -> None:
        self._window = window
        self._tokens: float | None = None  # None: full, at whatever rate
        self._updated_ms = 0

    def tokens(self, rate: float, now_ms: int) -> float:
        """Returns the tokens at this time; negative if the bucket is overdrawn."""
        capacity = rate * self._window.length_ms / 1000
        if self._tokens is None:
            return capacity
        gained = rate * max(now_ms - self._updated_ms, 0) / 1000
        return min(capacity, self._tokens + gained)

    def take(self, count: float, rate: float, now_ms: int) -> None:
        self._tokens = self.tokens(rate, now_ms) - count
        self._updated_ms = now_ms

    def delay_ms(self, rate: float, now_ms: int) -> int:
        """Returns how long it takes until the bucket is no longer overdrawn."""
        tokens = self.tokens(rate, now_ms)
        return round(-tokens / rate * 1000) if tokens < 0 else 0
