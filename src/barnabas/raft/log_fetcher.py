"""Follows the leader: fetches what it has appended, truncates where the logs part.

One fetch at a time, and the next only once what came is on disk: the offset it asks for tells
the leader how far this log is durable. Where the leader no longer has what comes next, its
snapshot is fetched piece by piece first.
"""

import logging
from dataclasses import dataclass
from typing import Any

from barnabas.log import EpochEndOffset
from barnabas.log.background import BackgroundExecutor
from barnabas.raft.addresses import ControllerAddress
from barnabas.raft.commit_publisher import CommitPublisher
from barnabas.raft.driver import RaftDriver, as_disk_error
from barnabas.raft.fetch_codec import (
    RaftFetchRequest,
    RaftFetchResponse,
    SnapshotChunk,
    fetch_request,
    read_fetch_response,
    read_snapshot_response,
    snapshot_request,
)
from barnabas.raft.raft_node import ANY_NODE
from barnabas.raft.snapshots import SnapshotDownload, SnapshotId
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.peer import Peers
from barnabas.wire.schema import Message

PURPOSE = "raft-fetch"
MAX_WAIT_MS = 500

_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True, eq=False)
class _Fetch:
    """One request, known by itself: an answer to another is out of date."""

    source: int
    epoch: int
    address: ControllerAddress
    is_to_leader: bool


class MetadataLogFetcher:
    """What is on its way from the leader, or from one who may know it."""

    def __init__(
        self,
        driver: RaftDriver,
        peers: Peers,
        background: BackgroundExecutor,
        publishing: CommitPublisher,
        *,
        must_be_durable: bool,
    ) -> None:
        self._driver = driver
        self._peers = peers
        self._background = background
        self._publishing = publishing
        self._must_be_durable = must_be_durable
        self._on_its_way: _Fetch | None = None
        # Whether to wait a little, after somebody did not answer well.
        self._rests = False
        self._download: SnapshotDownload | None = None
        self._is_finishing = False

    # ElectionSender

    def advance(self) -> None:
        raft, log = self._driver.raft, self._driver.log
        source = raft.fetch_source()
        if source is None:
            self._on_its_way = None
            return
        running = self._on_its_way
        if running is not None and (running.source, running.epoch) == (source, raft.epoch):
            return
        is_durable = log.durable_end_offset >= log.end_offset or not self._must_be_durable
        if self._rests or self._is_finishing or not is_durable:
            return
        addresses = self._driver.addresses
        leader = None if source == ANY_NODE else addresses.find(source)
        address = leader or addresses.next_candidate(self._driver.node)
        if address is not None:
            self._send(_Fetch(source, raft.epoch, address, leader is not None))

    def _send(self, fetch: _Fetch) -> None:
        self._on_its_way = fetch
        peer = self._peers.at(fetch.address.host, fetch.address.port, PURPOSE)
        peer.send(
            self._request(fetch),
            self._driver.config.request_timeout_ms,
            lambda answer: self._answered(fetch, answer),
        )

    def _request(self, fetch: _Fetch) -> Message:
        driver, raft, log = self._driver, self._driver.raft, self._driver.log
        if self._download is not None and fetch.is_to_leader:
            return snapshot_request(
                driver.cluster_id,
                raft.key,
                raft.epoch,
                self._download.snapshot,
                self._download.position,
                driver.config.fetch_snapshot_max_bytes,
            )
        asked = RaftFetchRequest(
            replica=raft.key,
            epoch=raft.epoch,
            offset=log.end_offset,
            last_fetched_epoch=log.last_epoch,
            high_watermark=raft.high_watermark,
            max_wait_ms=MAX_WAIT_MS,
            max_bytes=driver.config.fetch_max_bytes,
        )
        return fetch_request(driver.cluster_id, asked)

    # Taking answers

    def _answered(self, fetch: _Fetch, answer: Any) -> None:
        driver = self._driver
        if driver.is_closed:
            return
        is_current = fetch is self._on_its_way
        if is_current:
            self._on_its_way = None
        try:
            if not isinstance(answer, OSError):
                self._take_in(fetch, answer, is_current)
            elif is_current:
                self._missed(fetch, answer)
        except OSError as error:
            driver.fail(error)
        driver.step()

    def _missed(self, fetch: _Fetch, error: OSError) -> None:
        raft = self._driver.raft
        self._driver.peer_failures.on_failure(fetch.address, error)
        is_gone = isinstance(error, ConnectionError)
        if is_gone and fetch.is_to_leader and fetch.epoch == raft.epoch:
            self._driver.addresses.forget_leader()
            raft.on_leader_lost(self._driver.now_ms)
        self._rest()

    def _take_in(self, fetch: _Fetch, answer: Any, is_current: bool) -> None:
        driver, raft = self._driver, self._driver.raft
        is_records = isinstance(answer, FetchResponse)
        told = read_fetch_response(answer) if is_records else read_snapshot_response(answer)
        if told is None:
            driver.peer_failures.on_failure(fetch.address, answer)
            self._rest()
            return
        driver.peer_failures.on_response(fetch.address)
        driver.addresses.learn_leader(told.leader_id, told.leader_address)
        is_good = raft.on_fetch_response(told.error, told.leader_id, told.epoch, driver.now_ms)
        driver.perform_effects()
        if not is_current:
            return
        try:
            if isinstance(told, SnapshotChunk):
                self._take_piece(told, is_good)
            elif is_good:
                self._take_records(told)
            elif (raft.fetch_source(), raft.epoch) == (fetch.source, fetch.epoch):
                if fetch.is_to_leader and told.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    raft.on_leader_lost(driver.now_ms)  # it was restarted: it will not lead again
                self._rest()
        except (KafkaError, ProtocolViolation) as error:
            _logger.warning("What leader %d sent is not usable: %s", told.leader_id, error)
            self._abandon_download()
            self._rest()

    def _take_records(self, told: RaftFetchResponse) -> None:
        driver = self._driver
        if told.diverging is not None:
            self._truncate(told.diverging)
        elif told.snapshot is not None:
            self._begin_download(told.snapshot)
        else:
            if told.records and driver.log.append_as_follower(
                told.records, told.epoch, driver.wall_ms()
            ):
                driver.on_voters_changed()
            driver.raft.on_leader_high_watermark(told.high_watermark)

    def _truncate(self, leaders: EpochEndOffset) -> None:
        driver, log, raft = self._driver, self._driver.log, self._driver.raft
        offset = log.find_divergence(leaders)
        if offset < max(raft.high_watermark, self._publishing.next_offset):
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"to truncate to {offset} would take back what is committed.",
            )
        _logger.info("The log parts from the leader's at %d; it ends at %d", offset, log.end_offset)
        voters_went = log.truncate_to(offset)
        raft.on_truncated(log.end_offset)
        if voters_went:
            driver.on_voters_changed()

    def _rest(self) -> None:
        self._rests = True
        self._driver.call_later(self._driver.config.retry_backoff_ms, self._wake)

    def _wake(self) -> None:
        self._rests = False

    # Snapshots

    def _begin_download(self, snapshot: SnapshotId) -> None:
        if snapshot.end_offset < self._publishing.next_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"its snapshot ends at {snapshot.end_offset}, before what is committed here.",
            )
        self._abandon_download()
        _logger.info("MetadataLogFetcher the leader's snapshot of %d", snapshot.end_offset)
        self._download = self._driver.log.begin_download(snapshot)

    def _take_piece(self, piece: SnapshotChunk, is_good: bool) -> None:
        download = self._download
        if not is_good or download is None:
            # The snapshot is gone there, or the leader is: begin again with a fetch.
            self._abandon_download()
            if piece.error is not ErrorCode.SNAPSHOT_NOT_FOUND:
                self._rest()
            return
        end = piece.position + len(piece.records)
        expected = (download.snapshot, download.position)
        if (
            piece.snapshot,
            piece.position,
        ) != expected or not piece.position < end <= piece.size_bytes:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a piece of a snapshot does not fit.")
        download.append(piece.records)
        if end == piece.size_bytes:
            self._is_finishing = True
            self._background.run(download.finish, lambda error: self._finished(download, error))

    def _finished(self, download: SnapshotDownload, error: BaseException | None) -> None:
        driver = self._driver
        self._is_finishing = False
        self._download = None
        if driver.is_closed:
            return
        if isinstance(error, KafkaError):
            _logger.warning("The snapshot that the leader sent is damaged: %s", error)
            download.abandon()
            self._rest()
        elif isinstance(error, Exception):
            driver.fail(as_disk_error(error))
        else:
            self._begin_anew(download.snapshot)
        driver.step()

    def _begin_anew(self, snapshot: SnapshotId) -> None:
        driver = self._driver
        try:
            driver.log.install_snapshot(snapshot)
            driver.raft.on_truncated(driver.log.end_offset)
            driver.on_voters_changed()
            self._publishing.install_snapshot()
            driver.raft.on_leader_high_watermark(snapshot.end_offset)
        except OSError as error:
            driver.fail(error)

    def _abandon_download(self) -> None:
        if self._download is not None:
            self._download.abandon()
            self._download = None
