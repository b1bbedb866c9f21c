"""Answers Fetch: what this leader has appended, to followers as to observers.

A fetch that there is nothing for yet waits: until the log grows, until the fetcher does not know
the high watermark (KIP-1166), until this node no longer leads, or until it has waited enough.
"""

import asyncio
from dataclasses import dataclass

from barnabas.log.segments.log_slice import LogSlice
from barnabas.raft.driver import RaftDriver
from barnabas.raft.fetch_codec import RaftFetchRequest, fetch_response, read_fetch_request
from barnabas.raft.messages import FetchOutcome
from barnabas.raft.roles import Leader
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

LONGEST_WAIT_MS = 30_000
MAX_BYTES = 8 * 1024 * 1024

_FIRST_VERSION_WITH_ENDPOINTS = 17


@dataclass(slots=True, eq=False)
class _Parked:
    """A fetch that waits."""

    asked: RaftFetchRequest
    api_version: int
    answered: "asyncio.Future[FetchResponse]"
    timer: asyncio.TimerHandle | None = None

    def end(self) -> bool:
        """It waits no longer; whether somebody still wants the answer."""
        if self.timer is not None:
            self.timer.cancel()
        return not self.answered.done()


class MetadataFetchHandler:
    """The fetches of other replicas."""

    __slots__ = ("_driver", "_parked")

    def __init__(self, driver: RaftDriver) -> None:
        self._driver = driver
        self._parked: dict[_Parked, None] = {}

    def fetch(
        self, request: FetchRequest, api_version: int
    ) -> "FetchResponse | asyncio.Future[FetchResponse]":
        refused = self._driver.cluster_error(request.cluster_id)
        asked = read_fetch_request(request)
        if refused is not ErrorCode.NONE or asked is None:
            return FetchResponse(error_code=refused or ErrorCode.INVALID_REQUEST)
        verdict = self._verdict(asked)
        if not verdict.has_records or self._has_news(asked) or asked.max_wait_ms == 0:
            return self._answer(asked, verdict, api_version)
        return self._park(asked, api_version)

    def _verdict(self, asked: RaftFetchRequest) -> FetchOutcome:
        driver = self._driver
        if asked.max_wait_ms < 0:
            return FetchOutcome(ErrorCode.INVALID_REQUEST)
        verdict = driver.raft.leadership.on_fetch_request(
            asked.replica, asked.epoch, asked.offset, asked.last_fetched_epoch, driver.now_ms
        )
        driver.step()
        return verdict

    def _has_news(self, asked: RaftFetchRequest) -> bool:
        role = self._driver.raft.role
        if not isinstance(role, Leader) or role.epoch != asked.epoch:
            return True
        if asked.offset < self._driver.log.end_offset:
            return True
        return asked.high_watermark is not None and asked.high_watermark < role.high_watermark

    def _answer(
        self, asked: RaftFetchRequest, verdict: FetchOutcome, api_version: int
    ) -> FetchResponse:
        driver = self._driver
        records: LogSlice | None = None
        if verdict.has_records:
            max_bytes = min(max(asked.max_bytes, 1), MAX_BYTES)
            try:
                records = driver.log.read(asked.offset, max_bytes)
            except OSError as error:
                driver.fail(error)
                verdict = FetchOutcome(ErrorCode.UNKNOWN_SERVER_ERROR)
        role = driver.leader_role
        return fetch_response(
            verdict,
            driver.raft.leader_id,
            driver.raft.epoch,
            driver.leader if api_version >= _FIRST_VERSION_WITH_ENDPOINTS else None,
            start_offset=driver.log.start_offset,
            high_watermark=role.high_watermark if role else -1,
            records=records or b"",
        )

    def _park(self, asked: RaftFetchRequest, api_version: int) -> "asyncio.Future[FetchResponse]":
        loop = asyncio.get_running_loop()
        wait_ms = min(asked.max_wait_ms, LONGEST_WAIT_MS)
        answered: asyncio.Future[FetchResponse] = loop.create_future()
        parked = _Parked(asked, api_version, answered)
        parked.timer = loop.call_later(wait_ms / 1000, self._release, parked)
        self._parked[parked] = None
        return answered

    def _release(self, parked: _Parked) -> None:
        del self._parked[parked]
        if parked.end():
            verdict = self._verdict(parked.asked)
            parked.answered.set_result(self._answer(parked.asked, verdict, parked.api_version))

    def advance(self) -> None:
        for parked in list(self._parked):
            if parked in self._parked and self._has_news(parked.asked):
                self._release(parked)

    def close(self) -> None:
        """Nobody waits here any longer."""
        for parked in self._parked:
            if parked.end():
                unavailable = FetchOutcome(ErrorCode.BROKER_NOT_AVAILABLE)
                parked.answered.set_result(
                    self._answer(parked.asked, unavailable, parked.api_version)
                )
        self._parked.clear()
