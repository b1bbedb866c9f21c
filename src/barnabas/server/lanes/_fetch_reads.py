# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The reads of a plain fetch: `look` finds the records, `apply` does what their fetch changes.

`look` returns False if the fetch is not plain: a partition is not opened, or is an error, or its
reader must truncate its log, or headers of its batches are not in the page cache.
"""

from __future__ import annotations

from barnabas.log.segments.page_cache import pread_cached
from barnabas.server.lanes._fetch_request import PartitionRead, PlainFetchRequest

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Long = cython.typedef(cython.longlong)

_NO_EPOCH = -1


@cython.final
@cython.freelist(8)
@cython.cclass
class PlainFetch:
    """What was read for one fetch. See `_fetch_reads.pxd`."""

    def __init__(self, request: PlainFetchRequest):
        self.request = request
        self.broker = request.broker
        self.is_follower = request.is_follower
        self.returned_bytes = self.available_bytes = 0
        self.results = None
        self.is_complete = False

    # Looking

    def look(self):
        """Finds the records of all partitions."""
        reads: list = self.request.reads
        read: PartitionRead
        if self.request.session is None and len(reads) > 1:
            seen: set = set()
            for read in reads:
                seen.add(read.partition)
            if len(seen) != len(reads):
                return False  # a partition is requested twice, or several are not opened
        for read in reads:  # noqa: SIM110 - a generator costs more
            if not self.look_at(read):
                return False
        return True

    def look_at(self, read):
        partition = read.partition
        read.records = read.aborted_transactions = read.follower = None
        read.size_bytes = 0
        read.counted_bytes = 0
        read.is_caught_up = read.is_unchanged = False
        if partition is None or partition.error_code is not None:
            return False
        if not partition.is_leader and (self.is_follower or self.request.version < 11):
            return False
        if read.leader_epoch != _NO_EPOCH and read.leader_epoch != partition.leader_epoch:
            return False
        if (
            self.results is None
            and self.request.session is not None
            and not self.is_follower
            and self.is_unchanged(read)
        ):
            read.is_caught_up = read.is_unchanged = True
            return True
        try:
            return self.look_at_log(read, partition.log)
        except Exception:
            return False  # the handler fails in the same way, or waits for the disk

    def is_unchanged(self, read):
        """Returns whether a consumer is at the high watermark, and has it."""
        partition, requested = read.partition, read.requested
        high_watermark: Long = partition.high_watermark
        return (
            high_watermark == read.offset
            and partition.is_leader
            and read.last_fetched_epoch == _NO_EPOCH
            and requested.returned_high_watermark == high_watermark
            and requested.returned_log_start_offset == partition.log.log_start_offset
            and bool(requested.watched_keys)
        )

    def look_at_log(self, read, log):
        request: PlainFetchRequest = self.request
        partition = read.partition
        offset: Long = read.offset
        end_offset: Long = log.log_end_offset
        read.start_offset = log.log_start_offset
        read.high_watermark = partition.high_watermark
        read.stable_offset = log.last_stable_offset(read.high_watermark)
        end: Long = read.stable_offset if request.isolation else read.high_watermark
        if self.is_follower:
            leader_state = partition.leader_state
            if leader_state is None:
                return False
            read.follower = leader_state.follower_of_fetch(
                request.replica_id, request.replica_epoch, read.leader_epoch
            )
            end = end_offset
        if offset < read.start_offset or offset > end_offset:
            return False
        if read.last_fetched_epoch >= 0 and self.is_diverging(read, log):
            return False
        max_bytes: Long = min(read.max_bytes, request.max_bytes - self.returned_bytes)
        self.find_records(read, log, end, max_bytes)
        if offset >= end:
            state = partition.state
            read.is_caught_up = not self.is_follower or (
                state is not None and request.replica_id in state.isr
            )
        return True

    def find_records(self, read, log, end, max_bytes):
        """Finds the records up to `end`, and counts them towards the minimum.

        A partition with more records counts its whole limit: its complete batches may be smaller,
        and waiting would not change that.
        """
        offset: Long = read.offset
        at_least_one: cython.bint = self.returned_bytes == 0
        counted: Long = 0
        lists_aborted: cython.bint = self.request.isolation and not self.is_follower
        if offset < end and (max_bytes > 0 or at_least_one):
            records = log.segments.read(offset, max_bytes, end, at_least_one, pread_cached)
            if records is not None:
                read.records = records
                read.size_bytes = counted = records.size_bytes
                offset = records.next_offset
                self.returned_bytes += counted
            if lists_aborted:
                read.aborted_transactions = (
                    log.aborted_transactions(read.offset, offset) if records is not None else []
                )
        elif lists_aborted:
            read.aborted_transactions = []
        if offset < end and counted < max_bytes:
            counted = max_bytes
        read.counted_bytes = counted
        self.available_bytes += counted

    def is_diverging(self, read, log):
        """Returns whether the log of a follower has to be truncated, or this is not known."""
        epoch_end = log.epoch_end_offset(read.last_fetched_epoch)
        epoch: Long = epoch_end.epoch
        end_offset: Long = epoch_end.end_offset
        return epoch < read.last_fetched_epoch or end_offset < read.offset

    # Changing what the fetch changes

    def apply(self):
        request: PlainFetchRequest = self.request
        session = request.session
        read: PartitionRead
        if session is not None:
            for requested in request.updates:
                read = request.updates[requested]
                requested.set_requested(
                    read.offset,
                    read.max_bytes,
                    read.leader_epoch,
                    read.last_fetched_epoch,
                    read.log_start_offset,
                )
            self.broker.fetch_sessions.advance(session, request.now_ms)
            session.dirty.take_all()
        for read in request.reads:
            self.apply_read(read)

    def apply_read(self, read):
        request: PlainFetchRequest = self.request
        partition, requested = read.partition, read.requested
        if requested is not None:
            requested.is_caught_up = read.is_caught_up
            if read.is_unchanged:
                return
            keys: tuple = (partition.log, partition) if self.is_follower else (partition,)
            request.session.dirty.watch(requested, keys, self.broker.purgatory)
        if read.follower is not None:
            partition.leader_state.on_fetch(
                read.follower,
                read.offset,
                read.log_start_offset,
                request.replica_epoch,
                request.now_ms,
            )
            read.high_watermark = partition.high_watermark
            read.stable_offset = partition.log.last_stable_offset(read.high_watermark)
        metrics = self.broker.metrics.topic(partition.topic)
        metrics.fetch_requests += 1
        if read.records is not None and not self.is_follower:
            metrics.bytes_out += read.size_bytes

    # Waiting

    def begin_waiting(self):
        """Returns the keys whose change may complete the fetch."""
        self.results = {}
        read: PartitionRead
        for read in self.request.reads:
            if read.requested is None:
                self.results[read.partition] = read
            elif not read.is_unchanged:
                self.results[read.requested] = read
        session = self.request.session
        if session is None:
            return list(self.results)
        self.request.next_epoch = session.epoch
        return [session.dirty]

    def read_again(self, key):
        """Reads a partition that has changed, and does what its fetch changes.

        Returns False, and changes nothing, if it is not plain any more.
        """
        returned_bytes: Long = self.returned_bytes
        available_bytes: Long = self.available_bytes
        previous: PartitionRead = self.results.get(key)
        read: PartitionRead = self.request.again(previous, key)
        if previous is not None:
            self.returned_bytes -= previous.size_bytes
            self.available_bytes -= previous.counted_bytes
        if (self.is_follower and self.broker.partitions.throttle) or not self.look_at(read):
            self.returned_bytes = returned_bytes
            self.available_bytes = available_bytes
            return False
        if previous is not None and previous.records is not None and not self.is_follower:
            metrics = self.broker.metrics.topic(read.partition.topic)
            metrics.bytes_out -= previous.size_bytes
        self.results[key] = read
        self.apply_read(read)
        if self.available_bytes >= self.request.min_bytes or self.has_new_start(read):
            self.is_complete = True
        return True

    def has_new_start(self, read):
        """Returns whether a follower has to delete records, which is not delayed."""
        if not self.is_follower:
            return False
        returned: Long = read.requested.returned_log_start_offset
        return 0 <= returned < read.start_offset

    # Returning

    def all_reads(self):
        """Returns what was read, also what a session does not return."""
        if self.results is not None:
            return list(self.results.values())
        reads: list = []
        read: PartitionRead
        for read in self.request.reads:
            if not read.is_unchanged:
                reads.append(read)
        return reads

    def reads_to_return(self):
        """Returns what the response has. The client of a session has it from then on."""
        reads: list = self.request.reads if self.results is None else list(self.results.values())
        if self.request.session is None:
            return reads
        dirty = self.request.session.dirty
        returned: list = []
        with_records: list = []
        read: PartitionRead
        for read in reads:
            if read.is_unchanged:
                continue
            requested = read.requested
            high_watermark, start_offset = read.high_watermark, read.start_offset
            if read.records is not None or requested.has_changed(high_watermark, start_offset):
                requested.record_returned_offsets(high_watermark, start_offset)
                returned.append(read)
            if read.records is not None:
                with_records.append(requested)
            elif not read.is_caught_up:
                dirty.mark_dirty(requested)
        # The partitions without records come first the next time.
        for requested in with_records:
            dirty.mark_dirty(requested)
        return returned
