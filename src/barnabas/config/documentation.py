"""A sentence about each setting, for the documentation field of DescribeConfigs.

Imported only when a client requests it. A setting that is not here has no documentation.
"""

from __future__ import annotations

from barnabas.config import broker, topic
from barnabas.config.changes import ConfigResourceType

_TOPIC = {
    "cleanup.policy": "What happens to old records: delete removes segments past retention.ms or "
    "retention.bytes, compact keeps the last value of every key; both can be set.",
    "compression.gzip.level": "The level at which the broker compresses with gzip.",
    "compression.lz4.level": "The level at which the broker compresses with lz4.",
    "compression.type": "The compression of stored batches; producer keeps that of the producer.",
    "compression.zstd.level": "The level at which the broker compresses with zstd.",
    "delete.retention.ms": "How long a compacted topic keeps a tombstone after cleaning.",
    "file.delete.delay.ms": "How long a deleted file stays on disk before it is removed.",
    "flush.messages": "The number of records after which a log is flushed to disk.",
    "flush.ms": "The time after which a log is flushed to disk.",
    "follower.replication.throttled.replicas": "Followers, as partition:broker or *, that the "
    "replication throttle slows down.",
    "index.interval.bytes": "The number of bytes of the log between two entries of its index.",
    "internal.segment.bytes": "segment.bytes without its minimum, for tests only.",
    "leader.replication.throttled.replicas": "Leaders, as partition:broker or *, that the "
    "replication throttle slows down.",
    "local.retention.bytes": "With tiered storage, how many bytes of a partition stay locally; "
    "-2 is retention.bytes.",
    "local.retention.ms": "With tiered storage, how long records stay on local disk; "
    "-2 is retention.ms.",
    "max.compaction.lag.ms": "The maximum time before a record is compacted.",
    "max.message.bytes": "The maximum size of a record batch, after compression.",
    "message.timestamp.after.max.ms": "How far a record's timestamp can be in the future.",
    "message.timestamp.before.max.ms": "How far a record's timestamp can be in the past.",
    "message.timestamp.type": "Whether the timestamp of a record is set by its producer "
    "(CreateTime) or when it is appended (LogAppendTime).",
    "min.cleanable.dirty.ratio": "The ratio of dirty bytes of a log above which it is cleaned.",
    "min.compaction.lag.ms": "The minimum time before a record is compacted.",
    "min.insync.replicas": "How many replicas must have a record before acks=all succeeds.",
    "preallocate": "Whether the file of a new segment is allocated at its full size.",
    "remote.log.copy.disable": "Whether segments are no longer copied to the remote store.",
    "remote.log.delete.on.disable": "Whether disabling remote storage deletes remote segments.",
    "remote.storage.enable": "Whether old segments are copied to the remote store.",
    "retention.bytes": "The size above which a partition deletes old segments; -1: never.",
    "retention.ms": "The age at which segments are deleted; -1: never.",
    "segment.bytes": "The size at which a log rolls a new segment.",
    "segment.index.bytes": "The maximum size of a segment's index.",
    "segment.jitter.ms": "The maximum random time that is subtracted from segment.ms, so that not "
    "all segments roll at once.",
    "segment.ms": "The age at which a log rolls a new segment that is not full yet.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may become leader, "
    "which can lose acknowledged records.",
}

_GROUP = {
    "consumer.assignment.interval.ms": "The minimum time between two assignments of the group.",
    "consumer.heartbeat.interval.ms": "How often members of a consumer group send heartbeats.",
    "consumer.session.timeout.ms": "How long a member without heartbeats stays in the group.",
    "share.assignment.interval.ms": "The minimum time between two assignments of the group.",
    "share.auto.offset.reset": "Where a share group without offsets starts: earliest, latest, or "
    "by_duration:<ISO 8601 duration>.",
    "share.delivery.count.limit": "How often a record is delivered before it is archived.",
    "share.heartbeat.interval.ms": "How often members of a share group send heartbeats.",
    "share.isolation.level": "Whether the group reads records of open transactions.",
    "share.partition.max.record.locks": "How many records of a partition can be in flight at once.",
    "share.record.lock.duration.ms": "How long a member can hold a record before it is delivered "
    "to another.",
    "share.renew.acknowledge.enable": "Whether a member can extend its lock on a record.",
    "share.session.timeout.ms": "How long a member without heartbeats stays in the group.",
    "streams.assignment.interval.ms": "The minimum time between two assignments of the group.",
    "streams.heartbeat.interval.ms": "How often members of a streams group send heartbeats.",
    "streams.initial.rebalance.delay.ms": "How long a new streams group waits for members.",
    "streams.num.standby.replicas": "The number of standby replicas of each task.",
    "streams.session.timeout.ms": "How long a member without heartbeats stays in the group.",
}

_CLIENT_METRICS = {
    "interval.ms": "How often matching clients push their metrics.",
    "match": "The clients, as name=pattern pairs that must all match.",
    "metrics": "The prefixes of the metrics to push; * for all metrics.",
}

_BROKER = {
    "advertised.listeners": "The addresses that clients connect to; listeners if it is not set.",
    "auto.create.topics.enable": "Whether a request for a topic that does not exist creates it.",
    "background.threads": "Threads for background tasks.",
    "barnabas.metrics.authentication": "How clients of metrics log in: BASIC, BEARER; empty: not.",
    "barnabas.metrics.listener": "host:port of the Prometheus endpoint; empty for none.",
    "barnabas.metrics.protocol": "http or https, with the stores of listener.name.metrics.",
    "barnabas.sasl.jaas.file": "A JAAS file with the section KafkaServer.",
    "barnabas.sasl.password": "The password with which this node logs in to other nodes.",
    "barnabas.sasl.username": "The user as which this node logs in to other nodes.",
    "barnabas.sasl.users": "Users of PLAIN, as name:password with commas between.",
    "barnabas.sasl.users.file": "A file of users of PLAIN, with a line name:password for each.",
    "broker.id": "The old name of node.id.",
    "broker.rack": "The rack, zone or machine of this broker; replicas are spread over them.",
    "connections.max.idle.ms": "How long an idle connection stays open.",
    "controlled.shutdown.enable": "Whether leadership moves away before this broker stops.",
    "controller.listener.names": "The controller listeners; this node connects to the first.",
    "controller.quorum.bootstrap.servers": "host:port of controllers to find the quorum with.",
    "controller.quorum.voters": "A fixed quorum, as id@host:port of each voter.",
    "cordoned.log.dirs": "Log directories without new partitions; * for all of them.",
    "default.replication.factor": "The replication factor of topics that are created without one.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "The maximum size of a fetch response.",
    "group.initial.rebalance.delay.ms": "How long a new classic group waits for members.",
    "inter.broker.listener.name": "The listener for requests between brokers.",
    "listener.security.protocol.map": "The security protocol of each listener, as NAME:PROTOCOL.",
    "listeners": "The addresses that this node listens on, as NAME://host:port.",
    "log.cleaner.backoff.ms": "How long the cleaner sleeps if there is nothing to clean.",
    "log.cleaner.dedupe.buffer.size": "Memory of all cleaner threads for the keys of a log.",
    "log.cleaner.enable": "Whether compacted topics are cleaned.",
    "log.cleaner.io.max.bytes.per.second": "How fast the cleaner may read and write.",
    "log.cleaner.threads": "Threads that clean logs.",
    "log.dir": "The log directory if log.dirs is not set.",
    "log.dirs": "The directories of this node's logs.",
    "log.flush.offset.checkpoint.interval.ms": "How often recovery points are written to disk.",
    "log.flush.scheduler.interval.ms": "How often the broker checks which logs to flush.",
    "log.flush.start.offset.checkpoint.interval.ms": "How often log start offsets are saved.",
    "log.retention.check.interval.ms": "How often the broker checks for segments past retention.",
    "log.retention.hours": "retention.ms of topics in hours, if no other unit is set.",
    "log.retention.minutes": "retention.ms of topics in minutes, if log.retention.ms is not set.",
    "log.roll.hours": "segment.ms of topics in hours, if log.roll.ms is not set.",
    "log.roll.jitter.hours": "segment.jitter.ms of topics in hours.",
    "max.connection.creation.rate": "How many connections can be opened per second.",
    "max.connections": "How many connections can be open at once.",
    "max.connections.per.ip": "How many connections can be open from one address.",
    "max.connections.per.ip.overrides": "Other limits for some addresses, as host:count.",
    "max.incremental.fetch.session.cache.slots": "The number of fetch sessions in the cache.",
    "metadata.log.dir": "The directory of the metadata log; the first of log.dirs by default.",
    "metadata.log.max.record.bytes.between.snapshots": "Bytes of metadata log between snapshots.",
    "metadata.log.max.snapshot.interval.ms": "The maximum time between two snapshots.",
    "metadata.log.segment.bytes": "The size of a segment of the metadata log.",
    "metadata.log.segment.ms": "The age at which the metadata log rolls a new segment.",
    "metadata.max.idle.interval.ms": "How often the idle leader of the quorum appends a no-op.",
    "metadata.max.retention.bytes": "Bytes of metadata log and snapshots to keep.",
    "metadata.max.retention.ms": "How long metadata log segments and snapshots are kept.",
    "node.id": "The id of this node, unique in the cluster.",
    "num.io.threads": "Threads for disk work.",
    "num.network.threads": "Threads for each listener.",
    "num.partitions": "The partitions of topics that are created without a number.",
    "num.recovery.threads.per.data.dir": "Threads that recover the logs of a directory at start.",
    "num.replica.fetchers": "Connections to each leader for fetching its partitions.",
    "offsets.retention.minutes": "How long an idle group keeps its committed offsets.",
    "offsets.topic.num.partitions": "Partitions of the topic __consumer_offsets.",
    "offsets.topic.replication.factor": "Replicas of the topic __consumer_offsets.",
    "process.roles": "The roles of this node: broker, controller, or both.",
    "producer.id.expiration.ms": "How long the broker keeps the state of an idle producer.",
    "queued.max.request.bytes": "Bytes of requests in the queue; -1 for no limit.",
    "queued.max.requests": "Requests in the queue before no more are read.",
    "replica.fetch.max.bytes": "Bytes of a partition that a follower fetches at once.",
    "replica.fetch.wait.max.ms": "How long a follower's fetch waits for records.",
    "replica.lag.time.max.ms": "How long a follower can lag before it is out of sync.",
    "request.timeout.ms": "How long this node waits for a response to its own requests.",
    "socket.listen.backlog.size": "Connections that wait to be accepted.",
    "socket.receive.buffer.bytes": "SO_RCVBUF of connections; -1 for the system's default.",
    "socket.request.max.bytes": "The maximum size of a request.",
    "socket.send.buffer.bytes": "SO_SNDBUF of connections; -1 for the system's default.",
    "transaction.max.timeout.ms": "The maximum timeout of a transaction.",
    "transaction.state.log.min.isr": "min.insync.replicas of the topic __transaction_state.",
    "transaction.state.log.num.partitions": "Partitions of the topic __transaction_state.",
    "transaction.state.log.replication.factor": "Replicas of the topic __transaction_state.",
    "transactional.id.expiration.ms": "How long the coordinator keeps an idle transactional id.",
}


def find_documentation(resource_type: int, name: str) -> str | None:
    """Returns the documentation of a resource's setting, or None if there is none."""
    match resource_type:
        case ConfigResourceType.TOPIC:
            return _TOPIC.get(name)
        case ConfigResourceType.BROKER:
            # The default of a topic setting has the documentation of that setting.
            base = broker.base_name(name)
            return _BROKER.get(base) or _TOPIC.get(_TOPIC_NAMES.get(base, ""))
        case ConfigResourceType.CLIENT_METRICS:
            return _CLIENT_METRICS.get(name)
        case ConfigResourceType.GROUP:
            return _GROUP.get(name)
    return None


_TOPIC_NAMES = {
    synonym: setting.name for setting in topic.SETTINGS.values() for synonym in setting.synonyms
}
