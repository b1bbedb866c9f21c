from typing import TYPE_CHECKING

from barnabas.log.config import LogConfig
from barnabas.log.flush import LogFlusher
from barnabas.log.leader_epochs import LeaderEpochCache
from barnabas.log.producers.batch_metadata import BatchMetadata
from barnabas.log.producers.producer_state import AppendedBatch, ProducerStateManager
from barnabas.log.producers.verification import VerificationGuard
from barnabas.log.segments.log_segments import LogSegments
from barnabas.log.segments.open_files import Handle
from barnabas.wire.records.batch import Readable
from barnabas.wire.records.validate import ValidBatch

if TYPE_CHECKING:
    from barnabas.log.directory.log_directory import LogDirectory

NOT_PLAIN: int
NO_TRANSACTION: int
UNKNOWN_TIMESTAMP: int

class OpenFile:
    fd: int
    used: bool
    def __init__(self, fd: int) -> None: ...
    def write(self, piece: Readable, position: int) -> int: ...

class SegmentEnd:
    base_offset: int
    next_offset: int
    size_bytes: int
    index_interval_bytes: int
    unindexed_bytes: int
    first_timestamp: int
    max_timestamp: int
    offset_of_max_timestamp: int
    handle: Handle | None
    def __init__(self, base_offset: int, index_interval_bytes: int, size_bytes: int) -> None: ...
    def append(self, batch: Readable, size_bytes: int) -> None: ...
    def on_batch_written(self, size_bytes: int, last_offset: int, max_timestamp: int) -> None: ...
    def forget_limits(self) -> None: ...

class ProducerStateEntry:
    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_first_offset: int
    next_sequence: int
    batches: list[BatchMetadata]
    def __init__(
        self,
        producer_id: int,
        epoch: int = ...,
        coordinator_epoch: int = ...,
        last_timestamp: int = ...,
        transaction_start: int = ...,
    ) -> None: ...
    @property
    def last_sequence(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    def find_duplicate(self, header: AppendedBatch) -> BatchMetadata | None: ...
    def has_open_transaction(self, epoch: int) -> bool: ...
    def update_epoch(self, epoch: int) -> None: ...
    def add_batch(self, batch: BatchMetadata) -> None: ...

class ProducerEntries:
    entries: dict[int, ProducerStateEntry]
    pending_verifications: dict[int, VerificationGuard]

class LogEnd:
    directory: LogDirectory
    config: LogConfig
    segments: LogSegments
    producers: ProducerStateManager
    leader_epochs: LeaderEpochCache
    flusher: LogFlusher
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    def append_plain(self, batch: ValidBatch, leader_epoch: int, now_ms: int) -> int: ...
    def try_append_plain(self, batch: ValidBatch, leader_epoch: int, now_ms: int) -> int: ...
