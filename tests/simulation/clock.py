"""Time that passes only when nothing is left to do at the present moment."""

import asyncio
from collections.abc import Sequence

START_MS = 1_700_000_000_000
TURNS_A_MOMENT = 100_000
"""How often the loop may turn without time passing: beyond it, something goes round in circles."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop without files, sockets or threads, whose clock jumps to the next deadline."""

    def __init__(self) -> None:
        super().__init__()
        self._clock_resolution = 1e-6
        self._selector = _Jump()

    def time(self) -> float:
        return self._selector.now_s

    @property
    def now_ms(self) -> int:
        """The wall clock."""
        return START_MS + round(self.time() * 1000)

    def _process_events(self, _: Sequence[object]) -> None:
        """There are none but those of the clock."""


class _Jump:
    """Where a real loop waits for its sockets, this one moves its clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._turns = 0

    def select(self, timeout_s: float | None) -> list[object]:
        if timeout_s is None:
            raise RuntimeError("everybody waits, and nothing is going to happen")
        if timeout_s > 0:
            self.now_s += timeout_s
            self._turns = 0
        self._turns += 1
        if self._turns > TURNS_A_MOMENT:
            raise RuntimeError("something goes round in circles, and time stands still")
        return []
