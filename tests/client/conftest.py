"""The loop threads of a test's own clients, apart from those of other tests."""

from collections.abc import Iterator

import pytest

from barnabas.client.loop_thread import LoopThread


class Threads:
    """Those that were begun since the test began."""

    def __init__(self) -> None:
        self.begun: list[LoopThread] = []

    def have_ended(self) -> bool:
        return bool(self.begun) and all(each.loop.is_closed() for each in self.begun)


@pytest.fixture
def without_other_clients() -> Iterator[None]:
    """Clients of other tests, kept for longer, have a thread of their own meanwhile.

    If the last of them is closed during the test, their thread has ended and is not used again.
    """
    others, LoopThread._shared = LoopThread._shared, None
    yield
    with LoopThread._lock:
        LoopThread._shared = others if others is not None and others._users else None


@pytest.fixture
def threads(without_other_clients: None, monkeypatch: pytest.MonkeyPatch) -> Threads:
    """Those that the test begins."""
    threads = Threads()
    begin = LoopThread.__init__

    def note(self: LoopThread) -> None:
        begin(self)
        threads.begun.append(self)

    monkeypatch.setattr(LoopThread, "__init__", note)
    return threads
