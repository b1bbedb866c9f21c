"""Requests to one peer that are not over yet, by how far they have come."""

from collections import deque
from itertools import chain
from math import inf

from barnabas.net.formats import Format
from barnabas.wire.peer import Answered
from barnabas.wire.schema import Message


class Asked:
    """One request and who asked it."""

    __slots__ = (
        "answered",
        "correlation_id",
        "deadline_s",
        "format",
        "newest_version",
        "request",
        "sent_s",
    )

    format: Format
    correlation_id: int
    sent_s: float

    def __init__(
        self,
        request: Message,
        answered: Answered | None,
        deadline_s: float,
        newest_version: int | None = None,
    ) -> None:
        self.request = request
        self.answered = answered
        self.deadline_s = deadline_s
        self.newest_version = newest_version


class Unanswered:
    """Each of these in the order in which it was asked."""

    __slots__ = ("leaving", "sent", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Asked] = deque()  # for the connection
        self.leaving: deque[Asked] = deque()  # without an answer to come, until they have left
        self.sent: deque[Asked] = deque()

    def __len__(self) -> int:
        return len(self.sent) + len(self.waiting)

    def earliest_s(self) -> float:
        """The first deadline of those that wait for anything; infinite if there is none."""
        return min((each.deadline_s for each in chain(self.sent, self.waiting)), default=inf)

    def take_waiting(self) -> "deque[Asked]":
        waiting, self.waiting = self.waiting, deque()
        return waiting

    def take_late(self, now_s: float) -> list[Asked]:
        """Those whose time was over before the connection was made."""
        late = [asked for asked in self.waiting if asked.deadline_s <= now_s]
        if late:
            self.waiting = deque(asked for asked in self.waiting if asked.deadline_s > now_s)
        return late

    def take_all(self) -> list[Asked]:
        everybody = [*self.sent, *self.leaving, *self.waiting]
        self.sent.clear()
        self.leaving.clear()
        self.waiting.clear()
        return everybody
