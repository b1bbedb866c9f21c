# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The lane of Produce: appends plain batches, and responds.

`look` reads the request, checks every batch and writes the response without its offsets. Then `act`
appends, and patches the offsets in. A partition that fails meanwhile gets the handler's error.

It declines what is rare, or an error: partitions that are not opened or led here, internal topics,
topics with append time or a codec of their own, batches that start a transaction in a partition, or
whose max timestamp must be corrected.
"""

from __future__ import annotations

from barnabas.coordinator.records import INTERNAL_TOPICS
from barnabas.log._append import NOT_PLAIN, LogEnd
from barnabas.replication._append import PartitionEnd
from barnabas.security.authorizer.model import (
    AclOperation,
    topic_resource,
    transactional_id_resource,
)
from barnabas.server.api.produce import failed_response
from barnabas.server.lanes._lane import DECLINED, NO_RESPONSE, RESPONDED, Lane
from barnabas.server.lanes.produce_outcome import ProduceOutcome
from barnabas.server.uncommitted_appends import UncommittedAppends
from barnabas.wire._cursor import Cursor, Sink
from barnabas.wire.error_response import error_counter
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.records._validation import BatchChecker, ValidBatch
from barnabas.wire.records.batch import CODEC_BITS, HEADER_BYTES, TRANSACTIONAL_BIT
from barnabas.wire.records.compression import Codec

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

COMPILED: bool = cython.compiled

MAX_PARTITIONS = cython.declare(cython.Py_ssize_t, 1024)
"""The bound of what is kept for later requests; a request with more partitions is declined."""

_WITH_START_OFFSET = cython.declare(cython.longlong, 5)
_WITH_ZSTD = cython.declare(cython.longlong, 7)
_WITH_RECORD_ERRORS = cython.declare(cython.longlong, 8)
_FLEXIBLE = cython.declare(cython.longlong, 9)
_WITH_TOPIC_IDS = cython.declare(cython.longlong, 13)

_DECLINED = cython.declare(cython.longlong, DECLINED)
_NOT_PLAIN = cython.declare(cython.longlong, NOT_PLAIN)
_NO_ACKS = cython.declare(cython.longlong, 0)
_ACKS_ALL = cython.declare(cython.longlong, -1)
_CODEC_BITS = cython.declare(cython.longlong, CODEC_BITS)
_ZSTD = cython.declare(cython.longlong, Codec.ZSTD)
_TRANSACTIONAL_BIT = cython.declare(cython.longlong, TRANSACTIONAL_BIT)
_HEADER_BYTES = cython.declare(cython.Py_ssize_t, HEADER_BYTES)
_LONGEST_ID = cython.declare(cython.Py_ssize_t, 4096)


@cython.final
@cython.cclass
class PlannedAppend:
    """A batch that is to be appended, used again for later requests. See `_produce.pxd`."""

    def __init__(self):
        self.partition = None
        self.batch = ValidBatch()


@cython.final
@cython.cclass
class TopicCounts:
    """Counts appends, and adds them to the metrics of a topic when another topic follows."""

    def __init__(self, registry):
        self.registry = registry
        self.topic = None
        self.requests = 0
        self.bytes_in = 0
        self.messages_in = 0

    def add(self, topic, bytes_in, messages_in):
        if topic is not self.topic:
            self.flush()
            self.topic = topic
        self.requests += 1
        self.bytes_in += bytes_in
        self.messages_in += messages_in

    def flush(self):
        if self.topic is None:
            return
        metrics = self.registry.topic(self.topic)
        metrics.produce_requests += self.requests
        metrics.bytes_in += self.bytes_in
        metrics.messages_in += self.messages_in
        self.topic = None
        self.requests = 0
        self.bytes_in = 0
        self.messages_in = 0


@cython.final
@cython.cclass
class ProduceLane(Lane):
    """Serves the plain Produce requests of a broker."""

    def __init__(self, broker, metrics):
        Lane.__init__(self, metrics)
        self.broker = broker
        self.count_errors = error_counter(ProduceResponse, metrics.errors)
        self.errors = metrics.errors
        self.checker = BatchChecker()
        self.counts = TopicCounts(broker.metrics)
        self.appends = []
        self.count = 0

    def serve(self, request):
        try:
            if not self.look(request):
                return _DECLINED
            return self.act(request)
        finally:
            self.forget()

    # Looking

    def look(self, request):
        """Reads the request and writes the response, without offsets. Returns whether all of it
        is plain."""
        cursor: Cursor = request.cursor
        sink: Sink = request.sink
        self.version = request.version
        self.is_flexible = self.version >= _FLEXIBLE
        self.now_ms = request.received_ms
        self.producer_id = -1
        self.transactional_id = cursor.string(self.is_flexible)
        self.acks = cursor.int16()
        self.timeout_ms = cursor.int32()
        topic_count: Size = cursor.length(self.is_flexible)
        if cursor.is_short or topic_count <= 0 or not _ACKS_ALL <= self.acks <= 1:
            return False
        if cursor.view.readonly:
            return False
        sink.length(topic_count, self.is_flexible)
        for _ in range(topic_count):
            if not self.look_at_topic(request):
                return False
        if self.is_flexible and cursor.has_tags():
            return False
        request.throttle_at = sink.position
        request.is_exempt = self.acks == _NO_ACKS
        sink.int32(0)  # throttle time
        if self.is_flexible:
            sink.int8(0)
        if cursor.is_short:
            return False
        transactional_id = self.transactional_id
        return transactional_id is None or (
            len(transactional_id) <= _LONGEST_ID and self.may_write_transactions(request)
        )

    def look_at_topic(self, request):
        cursor: Cursor = request.cursor
        sink: Sink = request.sink
        is_flexible: cython.bint = self.is_flexible
        topic: object
        if self.version < _WITH_TOPIC_IDS:
            topic = cursor.string(is_flexible)
            find = self.broker.partitions.find_opened
        else:
            topic = cursor.uuid()
            find = self.broker.partitions.find_opened_by_id
        partition_count: Size = cursor.length(is_flexible)
        if topic is None or cursor.is_short or partition_count <= 0:
            return False
        if self.version < _WITH_TOPIC_IDS:
            sink.string(topic, is_flexible)
        else:
            sink.raw(topic)
        sink.length(partition_count, is_flexible)
        number: Size
        index: cython.int
        size_bytes: Size
        name: object = None
        for number in range(partition_count):
            index = cursor.int32()
            size_bytes = cursor.length(is_flexible)
            if cursor.is_short:
                return False
            partition = find(topic, index)
            if partition is None:
                return False
            if number == 0:
                name = partition.topic
                if not self.may_write(request, name):
                    return False
            sink.int32(index)
            if not self.look_at_partition(request, partition, size_bytes):
                return False
        if is_flexible:
            sink.int8(0)
            return not cursor.has_tags()
        return True

    def look_at_partition(self, request, partition, size):
        """Checks a batch and plans its append."""
        cursor: Cursor = request.cursor
        sink: Sink = request.sink
        checker = self.checker
        at: Size = cursor.at
        attributes: cython.int
        cursor.skip(size)
        if self.is_flexible and cursor.has_tags():
            return False
        if (
            cursor.is_short
            or size < _HEADER_BYTES
            or self.count == MAX_PARTITIONS
            or not partition.is_leader
            or (self.acks == _ACKS_ALL and partition.is_under_min_isr)
        ):
            return False
        attributes = cursor.data[at + 22] if cython.compiled else cursor.view[at + 22]
        checker.use(partition.config.produce, self.now_ms)
        if (
            checker.has_append_time
            or (checker.codec >= 0 and checker.codec != attributes & _CODEC_BITS)
            or (attributes & _CODEC_BITS == _ZSTD and self.version < _WITH_ZSTD)
        ):
            return False
        append: PlannedAppend = self.plan()
        batch: ValidBatch = append.batch
        if cython.compiled:
            if checker.check(batch, cursor.view, cursor.data, at, size) != 0:
                return False
            batch.start = cython.cast(cython.pointer[cython.uchar], cursor.data) + at
        elif checker.check_batch(batch, cursor.view[at : at + size]) != 0:
            return False
        if batch.max_timestamp != batch.header_timestamp:
            return False
        if attributes & _TRANSACTIONAL_BIT and not self.is_open_transaction(partition, batch):
            return False
        append.partition = partition
        append.at = at
        append.size_bytes = size
        append.offset_at = self.write_placeholder(sink)
        return True

    def write_placeholder(self, sink):
        """Writes the fields behind the index, and returns the position of the base offset."""
        position: Size
        sink.int16(0)
        position = sink.position
        sink.int64(-1)
        sink.int64(-1)
        if self.version >= _WITH_START_OFFSET:
            sink.int64(-1)
        if self.version >= _WITH_RECORD_ERRORS:
            sink.length(0, self.is_flexible)
            sink.string(None, self.is_flexible)
        if self.is_flexible:
            sink.int8(0)
        return position

    def is_open_transaction(self, partition, batch):
        """Returns whether the batch continues the one transaction of the request."""
        if self.transactional_id is None or batch.producer_id < 0:
            return False
        if self.producer_id < 0:
            self.producer_id = batch.producer_id
            self.producer_epoch = batch.producer_epoch
        if batch.producer_id != self.producer_id or batch.producer_epoch != self.producer_epoch:
            return False
        producers = partition.log.producers
        return producers.has_open_transaction(batch.producer_id, batch.producer_epoch)

    def may_write(self, request, topic):
        """Returns whether the client may write to a topic."""
        if topic in INTERNAL_TOPICS:
            return False
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        connection = request.connection
        return authorizer.is_known_to_be_allowed(
            connection.principal, connection.host, AclOperation.WRITE, topic_resource(topic)
        )

    def may_write_transactions(self, request):
        """Returns whether the client may use the transactional id, if a batch needs it."""
        authorizer = self.broker.authorizer
        if authorizer is None or self.producer_id < 0:
            return True
        connection = request.connection
        return authorizer.is_known_to_be_allowed(
            connection.principal,
            connection.host,
            AclOperation.WRITE,
            transactional_id_resource(self.transactional_id),
        )

    def plan(self):
        """Returns the next PlannedAppend."""
        number: Size = self.count
        if number == len(self.appends):
            self.appends.append(PlannedAppend())
        self.count = number + 1
        append: PlannedAppend = self.appends[number]
        return append

    def forget(self):
        """Keeps nothing of the request, whose memory is used again."""
        number: Size
        for number in range(self.count):
            append: PlannedAppend = self.appends[number]
            append.partition = None
            append.batch.release()
        self.count = 0
        self.checker.forget()

    # Acting

    def act(self, request):
        """Appends the batches in order."""
        failed: dict = None
        uncommitted: object = None
        number: Size
        acks: object = self.acks
        for number in range(self.count):
            append: PlannedAppend = self.appends[number]
            partition: PartitionEnd = append.partition
            records: object = request.cursor.view[append.at : append.at + append.size_bytes]
            append.batch.buffer = records
            first_offset: Long = _NOT_PLAIN
            next_offset: Long
            append_time_ms: Long = -1
            is_committed: cython.bint
            try:
                if cython.compiled:
                    first_offset = partition.append_plain(append.batch, self.acks, self.now_ms)
                if first_offset != _NOT_PLAIN:
                    next_offset = first_offset + append.batch.last_offset_delta + 1
                    is_committed = partition.is_plain_append_committed(next_offset, self.acks)
                else:
                    appended = partition.append_validated(append.batch, acks, self.now_ms)
                    first_offset = appended[0]
                    next_offset = appended[1] + 1
                    append_time_ms = appended[3]
                    is_committed = partition.is_committed(next_offset, acks)
            except Exception as failure:
                context = request.context(self.broker)
                response = failed_response(partition.index, records, partition, failure, context)
                failed = {} if failed is None else failed
                failed[number] = response, failure
                continue
            self.respond(request.sink, append, first_offset, next_offset, append_time_ms)
            if self.acks != _NO_ACKS and not is_committed:
                if uncommitted is None:
                    uncommitted = UncommittedAppends(acks)
                uncommitted.add(partition, next_offset, number)
        self.counts.flush()
        if failed is None and uncommitted is None:
            if self.acks == _NO_ACKS:
                return NO_RESPONSE
            self.errors[0] += self.count
            return RESPONDED
        outcome = ProduceOutcome(
            request.context(self.broker),
            request.sink,
            request.throttle_at,
            failed or {},
            uncommitted,
            self.count_errors,
        )
        if self.acks == _NO_ACKS:
            outcome.close_connection()
            return NO_RESPONSE
        return outcome.finish(request, self.metrics, self.timeout_ms)

    def respond(self, sink, append, first_offset, next_offset, append_time_ms):
        """Patches the offsets of an append into the response, and counts it."""
        at: Size = append.offset_at
        partition: PartitionEnd = append.partition
        log: LogEnd = partition.log
        sink.patch_int64(at, first_offset)
        sink.patch_int64(at + 8, append_time_ms)
        if self.version >= _WITH_START_OFFSET:
            sink.patch_int64(at + 16, log.log_start_offset)
        self.counts.add(partition.topic, append.size_bytes, next_offset - first_offset)
