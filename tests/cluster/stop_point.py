"""A moment between two steps at which a test may stop a process: the worst one to be gone."""

import os
import signal


class StopPoint:
    """SIGUSR1 asks the process to stop when it reaches the point; SIGCONT lets it go on."""

    def __init__(self) -> None:
        self._is_asked_for = False
        signal.signal(signal.SIGUSR1, self._ask)

    def reach(self) -> None:
        if self._is_asked_for:
            self._is_asked_for = False
            os.kill(os.getpid(), signal.SIGSTOP)

    def _ask(self, *_: object) -> None:
        self._is_asked_for = True
