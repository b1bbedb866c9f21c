"""The loop threads of a test's own clients, apart from those of other tests."""

import pytest

from barnabas.client.loop_thread import LoopThread


class Threads:
    """Those that were begun since the test began."""

    def __init__(self) -> None:
        self.begun: list[LoopThread] = []

    def have_ended(self) -> bool:
        return bool(self.begun) and all(each.loop.is_closed() for each in self.begun)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    """Begun anew: other tests' clients, kept for longer, have a thread already."""
    threads = Threads()
    begin = LoopThread.__init__

    def note(self: LoopThread) -> None:
        begin(self)
        threads.begun.append(self)

    monkeypatch.setattr(LoopThread, "_shared", None)
    monkeypatch.setattr(LoopThread, "__init__", note)
    return threads
