"""Handles Fetch of the metadata log, by followers and observers.

A fetch without new records waits until the log grows, until the high watermark rises above the
fetcher's (KIP-1166), until this node no longer leads, or until its maximum wait time is over.
"""

import asyncio
from dataclasses import dataclass

from barnabas.log.segments.log_slice import LogSlice
from barnabas.raft.addresses import QuorumLeader, RequestOrigin
from barnabas.raft.driver import RaftDriver
from barnabas.raft.fetch_codec import RaftFetchRequest, fetch_response, parse_fetch_request
from barnabas.raft.messages import FetchOutcome
from barnabas.raft.roles import Leader
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

MAX_WAIT_MS = 30_000
MAX_BYTES = 8 * 1024 * 1024

_FIRST_VERSION_WITH_ENDPOINTS = 17


@dataclass(slots=True, eq=False)
class _WaitingFetch:
    """A fetch that waits for records."""

    fetch: RaftFetchRequest
    origin: RequestOrigin
    response: "asyncio.Future[FetchResponse]"
    timer: asyncio.TimerHandle | None = None

    def stop_timer(self) -> bool:
        """Stops the timer. Returns whether the response is still awaited."""
        if self.timer is not None:
            self.timer.cancel()
        return not self.response.done()


class MetadataFetchHandler:
    """Responds to the fetches of other replicas, at once or when there is something new."""

    __slots__ = ("_driver", "_waiting")

    def __init__(self, driver: RaftDriver) -> None:
        self._driver = driver
        self._waiting: dict[_WaitingFetch, None] = {}

    def fetch(
        self, request: FetchRequest, origin: RequestOrigin
    ) -> "FetchResponse | asyncio.Future[FetchResponse]":
        error = self._driver.cluster_error(request.cluster_id)
        fetch = parse_fetch_request(request)
        if error is not ErrorCode.NONE or fetch is None:
            return FetchResponse(error_code=error or ErrorCode.INVALID_REQUEST)
        outcome = self._evaluate(fetch)
        if not outcome.has_records or self._is_due(fetch) or fetch.max_wait_ms == 0:
            return self._respond(fetch, outcome, origin)
        return self._wait(fetch, origin)

    def _evaluate(self, fetch: RaftFetchRequest) -> FetchOutcome:
        driver = self._driver
        if fetch.max_wait_ms < 0:
            return FetchOutcome(ErrorCode.INVALID_REQUEST)
        outcome = driver.raft.leadership.on_fetch_request(
            fetch.replica, fetch.epoch, fetch.offset, fetch.last_fetched_epoch, driver.now_ms
        )
        driver.step()
        return outcome

    def _is_due(self, fetch: RaftFetchRequest) -> bool:
        role = self._driver.raft.role
        if not isinstance(role, Leader) or role.epoch != fetch.epoch:
            return True
        if fetch.offset < self._driver.log.end_offset:
            return True
        return fetch.high_watermark is not None and fetch.high_watermark < role.high_watermark

    def _respond(
        self, fetch: RaftFetchRequest, outcome: FetchOutcome, origin: RequestOrigin
    ) -> FetchResponse:
        driver = self._driver
        records: LogSlice | None = None
        if outcome.has_records:
            max_bytes = min(max(fetch.max_bytes, 1), MAX_BYTES)
            try:
                records = driver.log.read(fetch.offset, max_bytes)
            except OSError as error:
                driver.fail(error)
                outcome = FetchOutcome(ErrorCode.UNKNOWN_SERVER_ERROR)
        role = driver.leader_role
        return fetch_response(
            outcome,
            driver.raft.leader_id,
            driver.raft.epoch,
            self._leader(origin),
            start_offset=driver.log.start_offset,
            high_watermark=role.high_watermark if role else -1,
            records=records or b"",
        )

    def _leader(self, origin: RequestOrigin) -> QuorumLeader | None:
        """Returns the leader to report; None in versions that have no field for it."""
        if origin.api_version < _FIRST_VERSION_WITH_ENDPOINTS:
            return None
        return self._driver.leader_at(origin.listener)

    def _wait(
        self, fetch: RaftFetchRequest, origin: RequestOrigin
    ) -> "asyncio.Future[FetchResponse]":
        loop = asyncio.get_running_loop()
        wait_ms = min(fetch.max_wait_ms, MAX_WAIT_MS)
        response: asyncio.Future[FetchResponse] = loop.create_future()
        waiting = _WaitingFetch(fetch, origin, response)
        waiting.timer = loop.call_later(wait_ms / 1000, self._complete, waiting)
        self._waiting[waiting] = None
        return response

    def _complete(self, waiting: _WaitingFetch) -> None:
        del self._waiting[waiting]
        if waiting.stop_timer():
            outcome = self._evaluate(waiting.fetch)
            waiting.response.set_result(self._respond(waiting.fetch, outcome, waiting.origin))

    def advance(self) -> None:
        for waiting in list(self._waiting):
            if waiting in self._waiting and self._is_due(waiting.fetch):
                self._complete(waiting)

    def close(self) -> None:
        """Completes every waiting fetch with BROKER_NOT_AVAILABLE."""
        for waiting in self._waiting:
            if waiting.stop_timer():
                unavailable = FetchOutcome(ErrorCode.BROKER_NOT_AVAILABLE)
                waiting.response.set_result(
                    self._respond(waiting.fetch, unavailable, waiting.origin)
                )
        self._waiting.clear()
