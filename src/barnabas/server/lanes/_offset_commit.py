# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The lane of OffsetCommit: commits without metadata, where the coordinator has no other replica.

`look` reads the request, packs the offsets of each topic as the coordinator stores them, and writes
the response. The coordinator checks the sender and appends in one call (`commit_at_once`). It does
nothing if the commit is an error, or would have to wait for other replicas or for the disk.

The lane declines commits with metadata or a retention time, of partitions that do not exist, and of
topics that the client may not read.
"""

from __future__ import annotations

from barnabas.coordinator.groups.offsets.plain_commit import PlainCommit
from barnabas.security.authorizer.model import AclOperation, group_resource, topic_resource
from barnabas.server.lanes._lane import DECLINED, NO_THROTTLE_TIME, RESPONDED, Lane
from barnabas.wire._cursor import Cursor, Sink
from barnabas.wire.errors import ErrorCode

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)

COMPILED: bool = cython.compiled

MAX_PARTITIONS = cython.declare(cython.Py_ssize_t, 8192)
"""The bound of what is kept for later requests; a request with more partitions is declined."""

_DECLINED = cython.declare(cython.longlong, DECLINED)
_RESPONDED = cython.declare(cython.longlong, RESPONDED)
_NO_ERROR = ErrorCode.NONE
_READ = AclOperation.READ

_WITH_THROTTLE_TIME = cython.declare(cython.longlong, 3)
_LAST_WITH_RETENTION_TIME = cython.declare(cython.longlong, 4)
_WITH_LEADER_EPOCHS = cython.declare(cython.longlong, 6)
_WITH_INSTANCE_ID = cython.declare(cython.longlong, 7)
_FLEXIBLE = cython.declare(cython.longlong, 8)
_WITH_TOPIC_IDS = cython.declare(cython.longlong, 10)

_BROKER_RETENTION = cython.declare(cython.longlong, -1)
_NO_LEADER_EPOCH = cython.declare(cython.longlong, -1)


@cython.final
@cython.cclass
class OffsetCommitLane(Lane):
    """Serves the plain OffsetCommit requests of a broker."""

    def __init__(self, broker, metrics):
        Lane.__init__(self, metrics)
        self.broker = broker
        self.errors = metrics.errors
        self.entries = Sink()

    def serve(self, request):
        cursor: Cursor = request.cursor
        self.version = request.version
        self.is_flexible = self.version >= _FLEXIBLE
        group_id: str = cursor.string(self.is_flexible)
        epoch: cython.int = cursor.int32()
        member_id: str = cursor.string(self.is_flexible)
        instance_id: str = None
        if self.version >= _WITH_INSTANCE_ID:
            instance_id = cursor.string(self.is_flexible)
        if self.version <= _LAST_WITH_RETENTION_TIME and cursor.int64() != _BROKER_RETENTION:
            return _DECLINED
        if cursor.is_short or group_id is None or member_id is None:
            return _DECLINED
        broker = self.broker
        if broker.authorizer is not None and not self.may_read(request, group_resource(group_id)):
            return _DECLINED
        topics_at: Size = cursor.at
        self.now_ms = broker.clock()
        commit = PlainCommit(group_id, self.now_ms)
        if not self.look(request, commit):
            return _DECLINED
        code = broker.groups.commit_at_once(commit, epoch, member_id, instance_id, self.version)
        if code is None:
            return _DECLINED
        if code != _NO_ERROR:
            request.sink.clear()
            cursor.at = topics_at
            self.copy_topics(request, code)
        self.errors[code] += self.partition_count
        return _RESPONDED

    def look(self, request, commit):
        """Adds all offsets to a commit, and writes the response to it. Returns whether the request
        is plain."""
        cursor: Cursor = request.cursor
        sink: Sink = request.sink
        topic_count: Size = cursor.length(self.is_flexible)
        if cursor.is_short or topic_count <= 0:
            return False
        self.partition_count = 0
        if self.version >= _WITH_THROTTLE_TIME:
            sink.int32(0)
        else:
            request.throttle_at = NO_THROTTLE_TIME
        sink.length(topic_count, self.is_flexible)
        for _ in range(topic_count):
            if not self.look_at_topic(request, commit):
                return False
        if self.is_flexible:
            sink.int8(0)
            if cursor.has_tags():
                return False
        return not cursor.is_short

    def look_at_topic(self, request, commit):
        cursor: Cursor = request.cursor
        sink: Sink = request.sink
        entries: Sink = self.entries
        is_flexible: cython.bint = self.is_flexible
        topic: object = self.copy_topic(cursor, sink)
        partition_count: Size = cursor.length(is_flexible)
        if topic is None or cursor.is_short or partition_count <= 0:
            return False
        self.partition_count += partition_count
        if self.partition_count > MAX_PARTITIONS:
            return False
        if self.broker.authorizer is not None and not self.may_read(
            request, topic_resource(topic.name)
        ):
            return False
        partitions = topic.partitions
        sink.length(partition_count, is_flexible)
        entries.clear()
        index: cython.int
        for _ in range(partition_count):
            index = cursor.int32()
            if index not in partitions:
                return False
            entries.int32(index)
            entries.int64(cursor.int64())
            if self.version >= _WITH_LEADER_EPOCHS:
                entries.int32(cursor.int32())
            else:
                entries.int32(_NO_LEADER_EPOCH)
            entries.int64(self.now_ms)
            if cursor.string(is_flexible) or (is_flexible and cursor.has_tags()):
                return False
            if cursor.is_short:
                return False
            self.write_partition(sink, index, 0)
        if is_flexible:
            sink.int8(0)
            if cursor.has_tags():
                return False
        packed = bytearray()
        entries.append_to(packed)
        commit.add_packed(topic.name, topic.topic_id, bytes(packed))
        return True

    def copy_topics(self, request, code):
        """Writes the response to a request that is plain but has failed, from its topics on."""
        cursor: Cursor = request.cursor
        sink: Sink = request.sink
        is_flexible: cython.bint = self.is_flexible
        topic_count: Size = cursor.length(is_flexible)
        if self.version >= _WITH_THROTTLE_TIME:
            sink.int32(0)
        sink.length(topic_count, is_flexible)
        for _ in range(topic_count):
            self.copy_topic(cursor, sink)
            partition_count: Size = cursor.length(is_flexible)
            sink.length(partition_count, is_flexible)
            for _ in range(partition_count):
                self.write_partition(sink, cursor.int32(), code)
                cursor.skip(8 if self.version < _WITH_LEADER_EPOCHS else 12)
                cursor.string(is_flexible)
                if is_flexible:
                    cursor.has_tags()
            if is_flexible:
                sink.int8(0)
                cursor.has_tags()
        if is_flexible:
            sink.int8(0)

    def copy_topic(self, cursor, sink):
        """Reads the name or id of a topic and writes it; returns the topic, or None."""
        if self.version >= _WITH_TOPIC_IDS:
            topic_id: bytes = cursor.uuid()
            if topic_id is None:
                return None
            sink.raw(topic_id)
            return self.broker.image.topics.by_id(topic_id)
        name: str = cursor.string(self.is_flexible)
        if name is None:
            return None
        sink.string(name, self.is_flexible)
        return self.broker.image.topics.by_name(name)

    def write_partition(self, sink, index, code):
        sink.int32(index)
        sink.int16(code)
        if self.is_flexible:
            sink.int8(0)

    def may_read(self, request, resource):
        connection = request.connection
        return self.broker.authorizer.is_known_to_be_allowed(
            connection.principal, connection.host, _READ, resource
        )
