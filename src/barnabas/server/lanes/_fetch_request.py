# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The request of a fetch that may be plain: its session and its partitions.

`parse` returns False for what is rare: a request that opens or ends a session or adds partitions to
it, a partition that is named twice, a consumer that may have a closer replica, throttled followers.
"""

from __future__ import annotations

from barnabas.security.authorizer.model import CLUSTER, AclOperation, topic_resource
from barnabas.server.fetching.replica_selector import RackAwareReplicaSelector

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

_NO_EPOCH = -1
_NO_SESSION = 0
_FINAL_EPOCH = -1

_READ = AclOperation.READ
_CLUSTER_ACTION = AclOperation.CLUSTER_ACTION


@cython.final
@cython.freelist(64)
@cython.cclass
class PartitionRead:
    """One partition of a fetch: what is requested, and what was read. See `_fetch_request.pxd`."""


@cython.final
@cython.freelist(8)
@cython.cclass
class PlainFetchRequest:
    """What a fetch requests. Nothing here changes anything."""

    # Parsing

    def parse(self, cursor, request):
        version: cython.int = request.version
        self.version = version
        self.is_flexible = version >= 12
        self.by_id = version >= 13
        self.now_ms = request.received_ms
        self.session = self.updates = self.generation = None
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

    # The partitions

    def add_dirty_partitions(self):
        """Adds those of the session that are to be read, in the order in which they are."""
        updates: dict = self.updates
        reads: list = self.reads
        dirty = self.session.dirty.partitions
        for requested in dirty:
            updated = updates.get(requested)
            reads.append(self.read_of(requested) if updated is None else updated)
        for requested in updates:
            if requested not in dirty:
                reads.append(updates[requested])
        return True

    def limit_bytes(self, limit):
        """Has no more bytes read, or waited for."""
        self.max_bytes = min(self.max_bytes, limit)
        self.min_bytes = min(self.min_bytes, self.max_bytes)

    def read_of(self, requested):
        """Returns a new read of a partition of the session."""
        read: PartitionRead = PartitionRead()
        read.requested = requested
        read.partition = requested.partition
        read.name = requested.key[0]
        read.index = requested.index
        read.offset = requested.fetch_offset
        read.max_bytes = requested.max_bytes
        read.leader_epoch = requested.current_leader_epoch
        read.last_fetched_epoch = requested.last_fetched_epoch
        read.log_start_offset = requested.log_start_offset
        return read

    def is_allowed(self, request):
        """Returns whether the client may read all partitions, without a line in the audit log."""
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        connection = request.connection
        principal, host = connection.principal, connection.host
        generation = self.generation = authorizer.generation
        if self.session is not None and (
            generation is None or self.session.checked_client != (principal, host, generation)
        ):
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

    # After a wait

    def again(self, read, key):
        """Returns a new read of the same partition, which a session knows by `key`."""
        if self.session is not None:
            return self.read_of(key)
        repeated: PartitionRead = PartitionRead()
        repeated.requested = None
        repeated.partition = read.partition
        repeated.name = read.name
        repeated.index = read.index
        repeated.offset = read.offset
        repeated.max_bytes = read.max_bytes
        repeated.leader_epoch = read.leader_epoch
        repeated.last_fetched_epoch = read.last_fetched_epoch
        repeated.log_start_offset = read.log_start_offset
        return repeated

    def is_still_allowed(self):
        """Returns whether neither the session nor the permissions have changed."""
        if self.session is not None and self.session.epoch != self.next_epoch:
            return False
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        return self.generation is not None and self.generation == authorizer.generation
