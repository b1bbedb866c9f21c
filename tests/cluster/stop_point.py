"""A point between two steps at which a test can stop a process."""

import os
import signal


class StopPoint:
    """SIGUSR1 requests a stop at the point; SIGCONT lets the process continue."""

    def __init__(self) -> None:
        self._is_requested = False
        signal.signal(signal.SIGUSR1, self._on_request)

    def reach(self) -> None:
        if self._is_requested:
            self._is_requested = False
            os.kill(os.getpid(), signal.SIGSTOP)

    def _on_request(self, *_: object) -> None:
        self._is_requested = True
