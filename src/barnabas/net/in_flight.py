"""Requests to one peer that have no response yet, by their state."""

from collections import deque
from itertools import chain
from math import inf

from barnabas.net.api_versions import ApiCodec
from barnabas.wire.peer import ResponseCallback
from barnabas.wire.schema import Message


class InFlightRequest:
    """One request and the callback of its response."""

    __slots__ = (
        "codec",
        "correlation_id",
        "deadline_s",
        "max_version",
        "message",
        "on_response",
        "sent_s",
    )

    codec: ApiCodec
    correlation_id: int
    sent_s: float

    def __init__(
        self,
        request: Message,
        on_response: ResponseCallback | None,
        deadline_s: float,
        max_version: int | None = None,
    ) -> None:
        self.message = request
        self.on_response = on_response
        self.deadline_s = deadline_s
        self.max_version = max_version


class InFlightRequests:
    """Three queues, each in the order of sending."""

    __slots__ = ("sent", "waiting", "without_response")

    def __init__(self) -> None:
        self.waiting: deque[InFlightRequest] = deque()
        """Requests that wait for the connection."""
        self.without_response: deque[InFlightRequest] = deque()
        """Produce requests with acks=0, until the socket has taken them."""
        self.sent: deque[InFlightRequest] = deque()
        """Requests that wait for their response."""

    def __len__(self) -> int:
        return len(self.sent) + len(self.waiting)

    def earliest_deadline_s(self) -> float:
        """Returns the first deadline of the waiting and sent requests, or infinity."""
        return min((request.deadline_s for request in chain(self.sent, self.waiting)), default=inf)

    def take_waiting(self) -> "deque[InFlightRequest]":
        waiting, self.waiting = self.waiting, deque()
        return waiting

    def take_expired(self, now_s: float) -> list[InFlightRequest]:
        """Removes and returns the waiting requests whose deadline has passed."""
        expired = [request for request in self.waiting if request.deadline_s <= now_s]
        if expired:
            self.waiting = deque(item for item in self.waiting if item.deadline_s > now_s)
        return expired

    def take_all(self) -> list[InFlightRequest]:
        requests = [*self.sent, *self.without_response, *self.waiting]
        self.sent.clear()
        self.without_response.clear()
        self.waiting.clear()
        return requests
