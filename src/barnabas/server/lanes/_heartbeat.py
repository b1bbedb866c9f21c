# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The lanes of Heartbeat and ConsumerGroupHeartbeat: members of groups in which nothing happens.

A heartbeat that only keeps a member alive restarts its session timer, and has the same response
every time. The coordinator does both checks and timer in one call (`refresh_classic_session`,
`refresh_consumer_session`). It does nothing if there is more to do, and the handler serves the
request: errors, rebalances, members that report partitions or change their subscription, classic
members of a consumer group, and a coordinator that is not loaded or waits for replicas.
"""

from __future__ import annotations

from barnabas.security.authorizer.model import AclOperation, group_resource
from barnabas.server.api.groups import group_client, is_consumer_protocol_enabled
from barnabas.server.lanes._lane import DECLINED, NO_THROTTLE_TIME, RESPONDED, Lane
from barnabas.wire._cursor import Cursor, Sink
from barnabas.wire.errors import ErrorCode

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled

_DECLINED = cython.declare(cython.longlong, DECLINED)
_RESPONDED = cython.declare(cython.longlong, RESPONDED)
_NONE = ErrorCode.NONE
_READ = AclOperation.READ

_WITH_THROTTLE_TIME = cython.declare(cython.longlong, 1)
_WITH_INSTANCE_ID = cython.declare(cython.longlong, 3)
_FLEXIBLE = cython.declare(cython.longlong, 4)
_WITH_REGEX = cython.declare(cython.longlong, 1)
"""Of ConsumerGroupHeartbeat, as the versions above are of Heartbeat."""


@cython.final
@cython.cclass
class HeartbeatLane(Lane):
    """Serves heartbeats of members of stable classic groups."""

    def __init__(self, broker, metrics):
        Lane.__init__(self, metrics)
        self.broker = broker
        self.errors = metrics.errors

    def serve(self, request):
        cursor: Cursor = request.cursor
        sink: Sink = request.sink
        version: cython.int = request.version
        is_flexible: cython.bint = version >= _FLEXIBLE
        group_id: str = cursor.string(is_flexible)
        generation: cython.int = cursor.int32()
        member_id: str = cursor.string(is_flexible)
        instance_id: str = None
        if version >= _WITH_INSTANCE_ID:
            instance_id = cursor.string(is_flexible)
        if is_flexible and cursor.has_tags():
            return _DECLINED
        if cursor.is_short or group_id is None or member_id is None:
            return _DECLINED
        broker = self.broker
        if broker.authorizer is not None and not _may_read(broker, request.connection, group_id):
            return _DECLINED
        if not broker.groups.refresh_classic_session(group_id, generation, member_id, instance_id):
            return _DECLINED
        if version >= _WITH_THROTTLE_TIME:
            sink.int32(0)
        else:
            request.throttle_at = NO_THROTTLE_TIME
        sink.int16(0)
        if is_flexible:
            sink.int8(0)
        self.errors[_NONE] += 1
        return _RESPONDED


@cython.final
@cython.cclass
class ConsumerHeartbeatLane(Lane):
    """Serves heartbeats of members of consumer groups, without any field that may change."""

    def __init__(self, broker, metrics):
        Lane.__init__(self, metrics)
        self.broker = broker
        self.errors = metrics.errors

    def serve(self, request):
        cursor: Cursor = request.cursor
        group_id: str = cursor.string(True)
        member_id: str = cursor.string(True)
        epoch: cython.int = cursor.int32()
        instance_id: str = cursor.string(True)
        if not self.is_unchanged(request) or group_id is None or member_id is None:
            return _DECLINED
        broker = self.broker
        connection = request.connection
        if not is_consumer_protocol_enabled(broker):
            return _DECLINED
        if broker.authorizer is not None and not _may_read(broker, connection, group_id):
            return _DECLINED
        client = group_client(request.client_id or "", connection.host, request.version)
        interval_ms = broker.groups.refresh_consumer_session(
            group_id, member_id, epoch, instance_id, client
        )
        if interval_ms is None:
            return _DECLINED
        self.respond(request.sink, member_id, epoch, interval_ms)
        self.errors[_NONE] += 1
        return _RESPONDED

    def is_unchanged(self, request):
        """Reads the fields that are null unless they change, and returns whether all are."""
        cursor: Cursor = request.cursor
        if cursor.string(True) is not None:  # rack
            return False
        if cursor.int32() != -1:  # rebalance timeout
            return False
        if cursor.length(True) != -1:  # subscribed topic names
            return False
        if request.version >= _WITH_REGEX and cursor.string(True) is not None:
            return False
        if cursor.string(True) is not None:  # assignor
            return False
        if cursor.length(True) != -1:  # partitions
            return False
        return not cursor.has_tags() and not cursor.is_short

    def respond(self, sink, member_id, epoch, interval_ms):
        sink.int32(0)  # throttle time
        sink.int16(0)
        sink.string(None, True)  # error message
        sink.string(member_id, True)
        sink.int32(epoch)
        sink.int32(interval_ms)
        sink.int8(-1)  # no assignment
        sink.int8(0)


@cython.cfunc
@cython.inline
def _may_read(broker: object, connection: object, group_id: str) -> cython.bint:
    """Returns whether the client of a connection may read the group."""
    return broker.authorizer.is_known_to_be_allowed(
        connection.principal, connection.host, _READ, group_resource(group_id)
    )
