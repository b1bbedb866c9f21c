# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The lane of Fetch: requests without a session, and those that continue one.

It looks at the request, the session and the partitions, and finds the records by the indexes. When
all of it is plain it changes what the handler would change, in the same order, and writes the
response: small records are read into it, large ones are regions of their files.

It declines what is rare or fails: a request that opens or ends a session or adds partitions to it,
a partition named twice or not opened yet, any error, a divergence, records whose headers are not in
the page cache, a consumer that may have a closer replica, a throttled follower.
"""

from __future__ import annotations

from barnabas.log.segments.page_cache import pread_cached, read_cached_into
from barnabas.security.authorizer.model import CLUSTER, AclOperation, topic_resource
from barnabas.server.fetching.replica_selector import RackAwareReplicaSelector
from barnabas.server.lanes._lane import DECLINED, RESPONDED, Lane

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

_DECLINED = DECLINED
_RESPONDED = RESPONDED

_NO_EPOCH = -1
_NO_SESSION = 0
_FINAL_EPOCH = -1

_MAX_COPIED_BYTES = 64 << 10
"""Up to this size of all records, reading them costs less than sending them from their files."""

_READ = AclOperation.READ
_CLUSTER_ACTION = AclOperation.CLUSTER_ACTION


@cython.final
@cython.freelist(64)
@cython.cclass
class PartitionRead:
    """One partition of a fetch: what is requested, and what was read. See `_fetch.pxd`."""


@cython.final
@cython.freelist(8)
@cython.cclass
class PlainFetch:
    """One fetch: first `parse` and `look`, which change nothing, then `apply` and `respond`.

    The first two return False if the request is not plain.
    """

    # Looking at the request

    def parse(self, cursor, request):
        version: cython.int = request.version
        self.version = version
        self.is_flexible = version >= 12
        self.by_id = version >= 13
        self.now_ms = request.received_ms
        self.session = self.updates = None
        self.reads = []
        self.replica_id = cursor.int32() if version < 15 else -1
        self.replica_epoch = -1
        self.max_wait_ms = cursor.int32()
        self.min_bytes = cursor.int32()
        self.max_bytes = cursor.int32()
        self.isolation = cursor.int8()
        if self.isolation != 0 and self.isolation != 1:
            return False
        if version >= 7:
            session_id: cython.int = cursor.int32()
            if not self.find_session(session_id, cursor.int32()):
                return False
        if not self.parse_topics(cursor):
            return False
        if version >= 7 and cursor.length(self.is_flexible) != 0:
            return False  # partitions that the session forgets
        rack: str = ""
        if version >= 11:
            rack = cursor.string(self.is_flexible)
        if self.is_flexible and not self.parse_tags(cursor):
            return False
        if cursor.is_short or rack is None:
            return False
        self.is_follower = self.replica_id >= 0
        if self.is_follower:
            return not self.broker.partitions.throttle
        return not rack or not RackAwareReplicaSelector.is_used(rack, self.broker)

    def find_session(self, session_id, epoch):
        if epoch == _FINAL_EPOCH:
            return session_id == _NO_SESSION
        if epoch <= 0:
            return False
        session = self.session = self.broker.fetch_sessions.find(session_id)
        if session is None or session.epoch != epoch or session.uses_topic_ids != self.by_id:
            return False
        self.updates = {}
        return True

    def parse_topics(self, cursor):
        count: Size = cursor.length(self.is_flexible)
        previous: object = None
        if count < 0 or (count == 0 and self.session is None):
            return False
        while count > 0:
            count -= 1
            name: object = cursor.uuid() if self.by_id else cursor.string(self.is_flexible)
            partitions: Size = cursor.length(self.is_flexible)
            if name is None or partitions <= 0 or name == previous:
                return False
            previous = name
            while partitions > 0:
                partitions -= 1
                if not self.parse_partition(cursor, name):
                    return False
            if self.is_flexible and cursor.has_tags():
                return False
        return True

    def parse_partition(self, cursor, name):
        version: cython.int = self.version
        read: PartitionRead = PartitionRead()
        read.name = name
        read.index = cursor.int32()
        read.leader_epoch = cursor.int32() if version >= 9 else -1
        read.offset = cursor.int64()
        read.last_fetched_epoch = cursor.int32() if version >= 12 else -1
        read.log_start_offset = cursor.int64() if version >= 5 else -1
        read.max_bytes = cursor.int32()
        if version >= 12:
            tags: Long = cursor.uvarint()
            while tags > 0:
                # The directory of the replica, and the high watermark that it has: not used.
                tags -= 1
                tag: Long = cursor.uvarint()
                size: Long = cursor.uvarint()
                is_directory: cython.bint = version >= 17 and tag == 0 and size == 16
                if not is_directory and not (version >= 18 and tag == 1 and size == 8):
                    return False
                cursor.skip(size)
                if cursor.is_short:
                    return False
        if cursor.is_short:
            return False
        return self.find_partition(read)

    def find_partition(self, read):
        """Returns False if the partition is not known yet, or was requested before."""
        if self.session is not None:
            requested = self.session.partitions.get((read.name, read.index))
            if requested is None or requested in self.updates:
                return False
            read.requested = requested
            read.partition = requested.partition
            self.updates[requested] = read
            return True
        if self.by_id:
            read.partition = self.broker.partitions.find_opened_by_id(read.name, read.index)
        else:
            read.partition = self.broker.partitions.find_opened(read.name, read.index)
        read.requested = None
        self.reads.append(read)
        return True

    def parse_tags(self, cursor):
        """Reads the replica's state; any other tagged field is not plain."""
        count: Long = cursor.uvarint()
        if count == 0:
            return True
        if count != 1 or self.version < 15 or cursor.uvarint() != 1:
            return False
        size: Long = cursor.uvarint()
        start: Size = cursor.at
        self.replica_id = cursor.int32()
        self.replica_epoch = cursor.int64()
        return not cursor.has_tags() and cursor.at == start + size

    # Looking at the partitions

    def add_dirty_partitions(self):
        """Adds those of the session that are to be read, in the order in which they are."""
        updates: dict = self.updates
        reads: list = self.reads
        dirty = self.session.dirty.partitions
        read: PartitionRead
        for requested in dirty:
            updated = updates.get(requested)
            if updated is not None:
                reads.append(updated)
                continue
            read = PartitionRead()
            read.requested = requested
            read.partition = requested.partition
            read.name = requested.key[0]
            read.index = requested.index
            read.offset = requested.fetch_offset
            read.max_bytes = requested.max_bytes
            read.leader_epoch = requested.current_leader_epoch
            read.last_fetched_epoch = requested.last_fetched_epoch
            read.log_start_offset = requested.log_start_offset
            reads.append(read)
        for requested in updates:
            if requested not in dirty:
                reads.append(updates[requested])
        return True

    def is_allowed(self, request):
        """Returns whether the client may read all partitions, without a line in the audit log."""
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        connection = request.connection
        principal, host = connection.principal, connection.host
        if self.session is not None:
            generation = authorizer.generation
            if generation is None or self.session.checked_client != (principal, host, generation):
                return False
        if self.is_follower:
            return authorizer.is_known_to_be_allowed(principal, host, _CLUSTER_ACTION, CLUSTER)
        topic: object = None
        read: PartitionRead
        for read in self.reads:
            if read.partition is None:
                return False
            if read.partition.topic != topic:
                topic = read.partition.topic
                resource = topic_resource(topic)
                if not authorizer.is_known_to_be_allowed(principal, host, _READ, resource):
                    return False
        return True

    def look(self):
        """Finds the records of all partitions."""
        reads: list = self.reads
        seen: set = set()
        read: PartitionRead
        if self.min_bytes > self.max_bytes:
            self.min_bytes = self.max_bytes
        self.returned_bytes = self.available_bytes = 0
        if self.session is None and len(reads) > 1:
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
        read.is_caught_up = read.is_unchanged = False
        if partition is None or partition.error_code is not None:
            return False
        if not partition.is_leader and (self.is_follower or self.version < 11):
            return False
        if read.leader_epoch != _NO_EPOCH and read.leader_epoch != partition.leader_epoch:
            return False
        if self.session is not None and not self.is_follower and self.is_unchanged(read):
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
        partition = read.partition
        offset: Long = read.offset
        end_offset: Long = log.log_end_offset
        read.start_offset = log.log_start_offset
        read.high_watermark = partition.high_watermark
        read.stable_offset = log.last_stable_offset(read.high_watermark)
        end: Long = read.stable_offset if self.isolation else read.high_watermark
        if self.is_follower:
            leader_state = partition.leader_state
            if leader_state is None:
                return False
            read.follower = leader_state.follower_of_fetch(
                self.replica_id, self.replica_epoch, read.leader_epoch
            )
            end = end_offset
        if offset < read.start_offset or offset > end_offset:
            return False
        if read.last_fetched_epoch >= 0 and self.is_diverging(read, log):
            return False
        max_bytes: Long = min(read.max_bytes, self.max_bytes - self.returned_bytes)
        self.find_records(read, log, end, max_bytes)
        if offset >= end:
            state = partition.state
            read.is_caught_up = not self.is_follower or (
                state is not None and self.replica_id in state.isr
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
        if offset < end and (max_bytes > 0 or at_least_one):
            records = log.segments.read(offset, max_bytes, end, at_least_one, pread_cached)
            if records is not None:
                read.records = records
                read.size_bytes = counted = records.size_bytes
                offset = records.next_offset
                self.returned_bytes += counted
            if self.isolation and not self.is_follower:
                read.aborted_transactions = (
                    log.aborted_transactions(read.offset, offset) if records is not None else []
                )
        elif self.isolation and not self.is_follower:
            read.aborted_transactions = []
        if offset < end and counted < max_bytes:
            counted = max_bytes
        self.available_bytes += counted

    def is_diverging(self, read, log):
        """Returns whether the log of a follower has to be truncated, or this is not known."""
        epoch_end = log.epoch_end_offset(read.last_fetched_epoch)
        epoch: Long = epoch_end.epoch
        end_offset: Long = epoch_end.end_offset
        return epoch < read.last_fetched_epoch or end_offset < read.offset

    # Changing what the fetch changes

    def apply(self):
        session = self.session
        read: PartitionRead
        if session is not None:
            for requested in self.updates:
                read = self.updates[requested]
                requested.set_requested(
                    read.offset,
                    read.max_bytes,
                    read.leader_epoch,
                    read.last_fetched_epoch,
                    read.log_start_offset,
                )
            self.broker.fetch_sessions.advance(session, self.now_ms)
            session.dirty.take_all()
        for read in self.reads:
            self.apply_read(read)

    def apply_read(self, read):
        partition, requested = read.partition, read.requested
        if requested is not None:
            requested.is_caught_up = read.is_caught_up
            if read.is_unchanged:
                return
            keys: tuple = (partition.log, partition) if self.is_follower else (partition,)
            self.session.dirty.watch(requested, keys, self.broker.purgatory)
        if read.follower is not None:
            partition.leader_state.on_fetch(
                read.follower, read.offset, read.log_start_offset, self.replica_epoch, self.now_ms
            )
            read.high_watermark = partition.high_watermark
            read.stable_offset = partition.log.last_stable_offset(read.high_watermark)
        metrics = self.broker.metrics.topic(partition.topic)
        metrics.fetch_requests += 1
        if read.records is not None and not self.is_follower:
            metrics.bytes_out += read.size_bytes

    # Responding

    def respond(self, sink, errors):
        """Writes the body of the response, and counts its error codes: all are NONE."""
        reads: list = self.reads if self.session is None else self.record_returned()
        errors[0] += 1 + len(reads)
        self.write(sink, reads)

    def record_returned(self):
        """Returns what is new to the client of the session, which has it from then on."""
        dirty = self.session.dirty
        returned: list = []
        with_records: list = []
        read: PartitionRead
        for read in self.reads:
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

    def write(self, sink, reads):
        is_flexible: cython.bint = self.is_flexible
        size_bytes: Size = 0
        topics: list = []  # of the reads of each topic
        name: object = None
        read: PartitionRead
        for read in reads:
            size_bytes += read.size_bytes
            if read.name != name:
                name = read.name
                partitions: list = []
                topics.append(partitions)
            partitions.append(read)
        sink.int32(0)  # throttle time
        if self.version >= 7:
            sink.int16(0)
            sink.int32(_NO_SESSION if self.session is None else self.session.session_id)
        sink.length(len(topics), is_flexible)
        for partitions in topics:
            read = partitions[0]
            if self.by_id:
                sink.raw(read.name)
            else:
                sink.string(read.name, is_flexible)
            sink.length(len(partitions), is_flexible)
            for read in partitions:
                self.write_partition(sink, read, size_bytes <= _MAX_COPIED_BYTES)
            if is_flexible:
                sink.int8(0)
        if is_flexible:
            sink.int8(0)

    def write_partition(self, sink, read, is_copied):
        is_flexible: cython.bint = self.is_flexible
        sink.int32(read.index)
        sink.int16(0)
        sink.int64(read.high_watermark)
        sink.int64(read.stable_offset)
        if self.version >= 5:
            sink.int64(read.start_offset)
        aborted: list = read.aborted_transactions
        sink.length(-1 if aborted is None else len(aborted), is_flexible)
        if aborted:
            for producer_id, first_offset in aborted:
                sink.int64(producer_id)
                sink.int64(first_offset)
                if is_flexible:
                    sink.int8(0)
        if self.version >= 11:
            sink.int32(-1)  # preferred read replica
        size: Size = read.size_bytes
        sink.length(size, is_flexible)
        if size:
            at: Size = sink.position
            records = read.records
            if not is_copied or not read_cached_into(
                records.file.fd, sink.window(size), records.position
            ):
                sink.position = at
                sink.region(records)
        if is_flexible:
            sink.int8(0)


@cython.final
@cython.cclass
class FetchLane(Lane):
    """Serves plain fetches of consumers and followers."""

    def __init__(self, broker, metrics):
        Lane.__init__(self, metrics)
        self.broker = broker
        self.fetch_max_bytes = broker.settings["fetch.max.bytes"]

    def serve(self, request):
        fetch: PlainFetch = PlainFetch()
        fetch.broker = self.broker
        if not fetch.parse(request.cursor, request):
            return _DECLINED
        if fetch.session is not None:
            fetch.add_dirty_partitions()
        fetch.max_bytes = min(fetch.max_bytes, self.fetch_max_bytes)
        if not fetch.is_allowed(request) or not fetch.look():
            return _DECLINED
        if fetch.available_bytes < fetch.min_bytes and fetch.max_wait_ms > 0:
            return _DECLINED
        fetch.apply()
        fetch.respond(request.sink, self.metrics.errors)
        return _RESPONDED
