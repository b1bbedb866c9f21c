"""Fetches the metadata log from the leader, and truncates this log where the two diverge.

There is one fetch at a time, and the next one only when its records are on disk: the fetch offset
tells the leader how far this log is durable. If the leader no longer has the next records, its
snapshot is fetched first, chunk by chunk.
"""

import logging
from dataclasses import dataclass
from typing import Any

from barnabas.log import EpochEndOffset
from barnabas.log.flush import BackgroundExecutor
from barnabas.raft.addresses import ControllerAddress
from barnabas.raft.commit_publisher import CommitPublisher
from barnabas.raft.driver import RaftDriver, as_disk_error
from barnabas.raft.fetch_codec import (
    RaftFetchRequest,
    RaftFetchResponse,
    SnapshotChunk,
    fetch_request,
    parse_fetch_response,
    parse_snapshot_response,
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
    """One request, compared by identity: a response to another one is out of date."""

    source: int
    epoch: int
    address: ControllerAddress
    is_to_leader: bool


class MetadataLogFetcher:
    """Fetches from the leader, or from a node that may know it."""

    def __init__(
        self,
        driver: RaftDriver,
        peers: Peers,
        background: BackgroundExecutor,
        publisher: CommitPublisher,
        *,
        must_be_durable: bool,
    ) -> None:
        self._driver = driver
        self._peers = peers
        self._background = background
        self._publisher = publisher
        self._must_be_durable = must_be_durable
        self._in_flight: _Fetch | None = None
        self._is_backing_off = False
        self._download: SnapshotDownload | None = None
        self._is_finishing = False

    # Sending

    def advance(self) -> None:
        raft, log = self._driver.raft, self._driver.log
        source = raft.fetch_source()
        if source is None:
            self._in_flight = None
            return
        in_flight = self._in_flight
        if in_flight is not None and (in_flight.source, in_flight.epoch) == (source, raft.epoch):
            return
        is_durable = log.durable_end_offset >= log.end_offset or not self._must_be_durable
        if self._is_backing_off or self._is_finishing or not is_durable:
            return
        addresses = self._driver.addresses
        leader = None if source == ANY_NODE else addresses.find(source)
        address = leader or addresses.next_candidate(self._driver.node)
        if address is not None:
            self._send(_Fetch(source, raft.epoch, address, leader is not None))

    def _send(self, fetch: _Fetch) -> None:
        self._in_flight = fetch
        peer = self._peers.at(fetch.address.host, fetch.address.port, PURPOSE)
        peer.send(
            self._request(fetch),
            self._driver.config.request_timeout_ms,
            lambda response: self._on_response(fetch, response),
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
        request = RaftFetchRequest(
            replica=raft.key,
            epoch=raft.epoch,
            offset=log.end_offset,
            last_fetched_epoch=log.last_epoch,
            high_watermark=raft.high_watermark,
            max_wait_ms=MAX_WAIT_MS,
            max_bytes=driver.config.fetch_max_bytes,
        )
        return fetch_request(driver.cluster_id, request)

    # Responses

    def _on_response(self, fetch: _Fetch, response: Any) -> None:
        driver = self._driver
        if driver.is_closed:
            return
        is_current = fetch is self._in_flight
        if is_current:
            self._in_flight = None
        try:
            if not isinstance(response, OSError):
                self._handle_response(fetch, response, is_current)
            elif is_current:
                self._on_error(fetch, response)
        except OSError as error:
            driver.fail(error)
        driver.step()

    def _on_error(self, fetch: _Fetch, error: OSError) -> None:
        raft = self._driver.raft
        self._driver.peer_failures.on_failure(fetch.address, error)
        is_disconnected = isinstance(error, ConnectionError)
        if is_disconnected and fetch.is_to_leader and fetch.epoch == raft.epoch:
            self._driver.addresses.forget_leader()
            raft.on_leader_lost(self._driver.now_ms)
        self._back_off()

    def _handle_response(self, fetch: _Fetch, response: Any, is_current: bool) -> None:
        driver, raft = self._driver, self._driver.raft
        is_records = isinstance(response, FetchResponse)
        parsed = parse_fetch_response(response) if is_records else parse_snapshot_response(response)
        if parsed is None:
            driver.peer_failures.on_failure(fetch.address, response)
            self._back_off()
            return
        driver.peer_failures.on_response(fetch.address)
        driver.addresses.learn_leader(parsed.leader_id, parsed.leader_address)
        is_from_leader = raft.on_fetch_response(
            parsed.error, parsed.leader_id, parsed.epoch, driver.now_ms
        )
        driver.perform_effects()
        if not is_current:
            return
        try:
            if isinstance(parsed, SnapshotChunk):
                self._append_chunk(parsed, is_from_leader)
            elif is_from_leader:
                self._apply_response(parsed)
            elif (raft.fetch_source(), raft.epoch) == (fetch.source, fetch.epoch):
                if fetch.is_to_leader and parsed.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    raft.on_leader_lost(
                        driver.now_ms
                    )  # it restarted and will not lead this epoch again
                self._back_off()
        except (KafkaError, ProtocolViolation) as error:
            _logger.warning("Leader %d sent an invalid response: %s", parsed.leader_id, error)
            self._abandon_download()
            self._back_off()

    def _apply_response(self, response: RaftFetchResponse) -> None:
        driver = self._driver
        if response.diverging is not None:
            self._truncate(response.diverging)
        elif response.snapshot is not None:
            self._begin_download(response.snapshot)
        else:
            if response.records and driver.log.append_as_follower(
                response.records, response.epoch, driver.wall_ms()
            ):
                driver.on_voters_changed()
            driver.raft.on_leader_high_watermark(response.high_watermark)

    def _truncate(self, leader_end: EpochEndOffset) -> None:
        driver, log, raft = self._driver, self._driver.log, self._driver.raft
        offset = log.find_divergence(leader_end)
        if offset < max(raft.high_watermark, self._publisher.next_offset):
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"truncating to offset {offset} would remove committed records.",
            )
        _logger.info(
            "Truncating to offset %d, where the leader's log diverges; the log end offset is %d",
            offset,
            log.end_offset,
        )
        voters_changed = log.truncate_to(offset)
        raft.on_truncated(log.end_offset)
        if voters_changed:
            driver.on_voters_changed()

    def _back_off(self) -> None:
        self._is_backing_off = True
        self._driver.call_later(self._driver.config.retry_backoff_ms, self._end_backoff)

    def _end_backoff(self) -> None:
        self._is_backing_off = False

    # Snapshots

    def _begin_download(self, snapshot: SnapshotId) -> None:
        if snapshot.end_offset < self._publisher.next_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"its snapshot ends at offset {snapshot.end_offset}, below what is committed here.",
            )
        self._abandon_download()
        _logger.info("Fetching the leader's snapshot with end offset %d", snapshot.end_offset)
        self._download = self._driver.log.begin_download(snapshot)

    def _append_chunk(self, chunk: SnapshotChunk, is_from_leader: bool) -> None:
        download = self._download
        if not is_from_leader or download is None:
            # The leader deleted the snapshot, or lost its leadership: begin again with a fetch.
            self._abandon_download()
            if chunk.error is not ErrorCode.SNAPSHOT_NOT_FOUND:
                self._back_off()
            return
        end = chunk.position + len(chunk.records)
        expected = (download.snapshot, download.position)
        if (
            chunk.snapshot,
            chunk.position,
        ) != expected or not chunk.position < end <= chunk.size_bytes:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, "a chunk of the snapshot has an unexpected position."
            )
        download.append(chunk.records)
        if end == chunk.size_bytes:
            self._is_finishing = True
            self._background.run(
                download.finish, lambda error: self._on_download_finished(download, error)
            )

    def _on_download_finished(
        self, download: SnapshotDownload, error: BaseException | None
    ) -> None:
        driver = self._driver
        self._is_finishing = False
        self._download = None
        if driver.is_closed:
            return
        if isinstance(error, KafkaError):
            _logger.warning("The snapshot of the leader is corrupt: %s", error)
            download.abandon()
            self._back_off()
        elif isinstance(error, Exception):
            driver.fail(as_disk_error(error))
        else:
            self._install(download.snapshot)
        driver.step()

    def _install(self, snapshot: SnapshotId) -> None:
        driver = self._driver
        try:
            driver.log.install_snapshot(snapshot)
            driver.raft.on_truncated(driver.log.end_offset)
            driver.on_voters_changed()
            self._publisher.install_snapshot()
            driver.raft.on_leader_high_watermark(snapshot.end_offset)
        except OSError as error:
            driver.fail(error)

    def _abandon_download(self) -> None:
        if self._download is not None:
            self._download.abandon()
            self._download = None
