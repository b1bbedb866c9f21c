"""What settings mean, in a sentence each: the documentation field of DescribeConfigs.

Imported only when a client asks for it. A setting that is not here is described without.
"""

from __future__ import annotations

from barnabas.config import broker, topic
from barnabas.config.changes import ResourceType

_TOPIC = {
    "cleanup.policy": "What becomes of old records: delete drops whole segments past retention.ms "
    "or retention.bytes, compact keeps the last value of every key; both may be given.",
    "compression.gzip.level": "Level at which the broker compresses with gzip.",
    "compression.lz4.level": "Level at which the broker compresses with lz4.",
    "compression.type": "How batches are stored; producer keeps them as they were sent.",
    "compression.zstd.level": "Level at which the broker compresses with zstd.",
    "delete.retention.ms": "How long a compacted topic still shows a tombstone after cleaning.",
    "file.delete.delay.ms": "How long a deleted file stays on disk before it is removed.",
    "flush.messages": "After how many records a log is forced to disk.",
    "flush.ms": "After what time a log is forced to disk.",
    "follower.replication.throttled.replicas": "Followers, as partition:broker or *, that the "
    "replication throttle slows down.",
    "index.interval.bytes": "How many bytes of the log lie between two entries of its index.",
    "leader.replication.throttled.replicas": "Leaders, as partition:broker or *, that the "
    "replication throttle slows down.",
    "local.retention.bytes": "With tiered storage, how many bytes a partition keeps locally; "
    "-2 is retention.bytes.",
    "local.retention.ms": "With tiered storage, how long a partition keeps records locally; "
    "-2 is retention.ms.",
    "max.compaction.lag.ms": "The longest that a record of a compacted topic waits for cleaning.",
    "max.message.bytes": "The largest batch that the topic takes, as compressed.",
    "message.timestamp.after.max.ms": "How far a record's timestamp may be ahead of the broker.",
    "message.timestamp.before.max.ms": "How far a record's timestamp may be behind the broker.",
    "message.timestamp.type": "Whether a record carries the time that its producer gave it or "
    "that at which it was appended.",
    "min.cleanable.dirty.ratio": "The share of a log that must be dirty before it is cleaned.",
    "min.compaction.lag.ms": "The shortest that a record of a compacted topic stays uncompacted.",
    "min.insync.replicas": "How many replicas must have a record before acks=all is answered.",
    "preallocate": "Whether a new segment's file takes its full size on disk at once.",
    "remote.log.copy.disable": "Whether copying to the remote store has stopped.",
    "remote.log.delete.on.disable": "Whether turning remote storage off deletes what is there.",
    "remote.storage.enable": "Whether old segments go to the remote store.",
    "retention.bytes": "How many bytes each partition keeps before old segments go; -1 is all.",
    "retention.ms": "How long records are kept before their segment goes; -1 is for ever.",
    "segment.bytes": "The size at which a log begins a new segment.",
    "segment.index.bytes": "The size that a segment's index can grow to.",
    "segment.jitter.ms": "At most how much earlier than segment.ms a segment ends, at random, so "
    "that many do not end together.",
    "segment.ms": "The age at which a log begins a new segment even if the old one is not full.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may become leader, "
    "at the price of acknowledged records.",
}

_GROUP = {
    "consumer.assignment.interval.ms": "The least time between two assignments of the group.",
    "consumer.heartbeat.interval.ms": "How often members of a consumer group are to be heard.",
    "consumer.session.timeout.ms": "How long a silent member stays in the group.",
    "share.assignment.interval.ms": "The least time between two assignments of the group.",
    "share.auto.offset.reset": "Where a share group without offsets begins: earliest, latest, or "
    "by_duration: with how far back.",
    "share.delivery.count.limit": "How often a record is offered before it is given up.",
    "share.heartbeat.interval.ms": "How often members of a share group are to be heard.",
    "share.isolation.level": "Whether the group sees records of unfinished transactions.",
    "share.partition.max.record.locks": "How many records of a partition can be out at once.",
    "share.record.lock.duration.ms": "How long a member may hold a record before it goes to "
    "another.",
    "share.renew.acknowledge.enable": "Whether a member may ask for more time for a record.",
    "share.session.timeout.ms": "How long a silent member stays in the group.",
    "streams.assignment.interval.ms": "The least time between two assignments of the group.",
    "streams.heartbeat.interval.ms": "How often members of a streams group are to be heard.",
    "streams.initial.rebalance.delay.ms": "How long a new streams group waits for members.",
    "streams.num.standby.replicas": "How many standby copies each task's state has.",
    "streams.session.timeout.ms": "How long a silent member stays in the group.",
}

_CLIENT_METRICS = {
    "interval.ms": "How often matching clients push their metrics.",
    "match": "Which clients: name=pattern pairs that must all fit.",
    "metrics": "Prefixes of the metrics to push; * is all of them.",
}

_BROKER = {
    "advertised.listeners": "The addresses that clients are told; without it, listeners.",
    "auto.create.topics.enable": "Whether asking for a topic that does not exist creates it.",
    "background.threads": "Threads for background tasks.",
    "barnabas.metrics.listener": "host:port of the Prometheus endpoint; empty for none.",
    "broker.id": "The old name of node.id.",
    "broker.rack": "The rack, zone or machine of this broker; replicas are spread over them.",
    "connections.max.idle.ms": "How long a silent connection stays open.",
    "controlled.shutdown.enable": "Whether leadership moves away before this broker stops.",
    "controller.listener.names": "The listeners of the controllers, the first for this node's use.",
    "controller.quorum.bootstrap.servers": "host:port of controllers by which to find the quorum.",
    "controller.quorum.voters": "A fixed quorum, as id@host:port of each voter.",
    "cordoned.log.dirs": "Log directories that take no new partitions; * is all of them.",
    "default.replication.factor": "Replicas of a topic that is created without saying how many.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "The most bytes in one answer to a fetch.",
    "group.initial.rebalance.delay.ms": "How long a new classic group waits for members.",
    "inter.broker.listener.name": "The listener over which brokers talk to each other.",
    "listener.security.protocol.map": "The security protocol of each listener, as NAME:PROTOCOL.",
    "listeners": "The addresses that this node listens on, as NAME://host:port.",
    "log.cleaner.backoff.ms": "How long the cleaner sleeps when there is nothing to clean.",
    "log.cleaner.dedupe.buffer.size": "Memory of all cleaner threads for the keys of a log.",
    "log.cleaner.enable": "Whether compacted topics are cleaned.",
    "log.cleaner.io.max.bytes.per.second": "How fast the cleaner may read and write.",
    "log.cleaner.threads": "Threads that clean logs.",
    "log.dir": "The log directory where log.dirs is not set.",
    "log.dirs": "The directories of this node's logs.",
    "log.flush.offset.checkpoint.interval.ms": "How often recovery points are written down.",
    "log.flush.scheduler.interval.ms": "How often logs are looked at for a flush that is due.",
    "log.flush.start.offset.checkpoint.interval.ms": "How often log starts are written down.",
    "log.retention.check.interval.ms": "How often logs are looked at for segments past retention.",
    "log.retention.hours": "retention.ms of topics in hours; the last to be looked at.",
    "log.retention.minutes": "retention.ms of topics in minutes, if log.retention.ms is not set.",
    "log.roll.hours": "segment.ms of topics in hours, where log.roll.ms is not set.",
    "log.roll.jitter.hours": "segment.jitter.ms of topics in hours.",
    "max.connection.creation.rate": "How many connections may be opened a second.",
    "max.connections": "How many connections may be open at once.",
    "max.connections.per.ip": "How many connections may be open from one address.",
    "max.connections.per.ip.overrides": "Other bounds for some addresses, as host:count.",
    "max.incremental.fetch.session.cache.slots": "How many fetch sessions are kept.",
    "metadata.log.dir": "The directory of the metadata log; the first of log.dirs by default.",
    "metadata.log.max.record.bytes.between.snapshots": "Bytes of metadata log between snapshots.",
    "metadata.log.max.snapshot.interval.ms": "The longest time between two snapshots.",
    "metadata.log.segment.bytes": "The size of a segment of the metadata log.",
    "metadata.log.segment.ms": "The age at which the metadata log begins a new segment.",
    "metadata.max.idle.interval.ms": "How often the idle leader of the quorum appends a no-op.",
    "metadata.max.retention.bytes": "Bytes of metadata log and snapshots to keep.",
    "metadata.max.retention.ms": "How long metadata log segments and snapshots are kept.",
    "node.id": "The id of this node, its own in the cluster.",
    "num.io.threads": "Threads for disk work.",
    "num.network.threads": "Threads for each listener.",
    "num.partitions": "Partitions of a topic that is created without saying how many.",
    "num.recovery.threads.per.data.dir": "Threads that recover a log directory at start.",
    "num.replica.fetchers": "Connections by which partitions are fetched from each leader.",
    "offsets.retention.minutes": "How long an idle group keeps its committed offsets.",
    "offsets.topic.num.partitions": "Partitions of the topic of committed offsets.",
    "offsets.topic.replication.factor": "Replicas of the topic of committed offsets.",
    "process.roles": "What this node is: broker, controller, or both.",
    "producer.id.expiration.ms": "How long a silent producer's sequence numbers are remembered.",
    "queued.max.request.bytes": "Bytes of requests that may wait; -1 for no bound.",
    "queued.max.requests": "Requests that may wait before no more are read.",
    "replica.fetch.max.bytes": "Bytes of a partition that a follower asks for at once.",
    "replica.fetch.wait.max.ms": "How long a follower's fetch may wait for records.",
    "replica.lag.time.max.ms": "How long a follower may lag before it is out of sync.",
    "request.timeout.ms": "How long this node waits for an answer to its own requests.",
    "socket.listen.backlog.size": "Connections that the system may hold before they are accepted.",
    "socket.receive.buffer.bytes": "SO_RCVBUF of connections; -1 for the system's own.",
    "socket.request.max.bytes": "The largest request that is read.",
    "socket.send.buffer.bytes": "SO_SNDBUF of connections; -1 for the system's own.",
    "transaction.max.timeout.ms": "The longest timeout that a transaction may ask for.",
    "transaction.state.log.min.isr": "min.insync.replicas of the topic of transactions.",
    "transaction.state.log.num.partitions": "Partitions of the topic of transactions.",
    "transaction.state.log.replication.factor": "Replicas of the topic of transactions.",
    "transactional.id.expiration.ms": "How long an idle transactional id is remembered.",
}


def documentation(resource_type: int, name: str) -> str | None:
    """What a resource's setting means, or None where that is not written yet."""
    match resource_type:
        case ResourceType.TOPIC:
            return _TOPIC.get(name)
        case ResourceType.BROKER:
            # A setting that topics fall back to means what theirs means.
            base = broker.base_name(name)
            return _BROKER.get(base) or _TOPIC.get(_TOPIC_NAMES.get(base, ""))
        case ResourceType.CLIENT_METRICS:
            return _CLIENT_METRICS.get(name)
        case ResourceType.GROUP:
            return _GROUP.get(name)
    return None


_TOPIC_NAMES = {
    synonym: setting.name for setting in topic.SETTINGS.values() for synonym in setting.synonyms
}
