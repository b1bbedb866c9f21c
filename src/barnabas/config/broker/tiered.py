"""Settings of tiered storage: copying segments to a remote store and reading them back."""

from barnabas.config.checks import NonEmpty, at_least, between
from barnabas.config.setting import (
    BOOLEAN,
    CLUSTER,
    DOUBLE,
    INT,
    LONG,
    LOW,
    MAX_LONG,
    MEDIUM,
    STRING,
    Setting,
    declare,
)

SETTINGS = declare(
    Setting("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, MEDIUM, update=CLUSTER),
    Setting("remote.fetch.max.wait.ms", INT, 500, MEDIUM, at_least(1), update=CLUSTER),
    Setting(
        "remote.list.offsets.request.timeout.ms", LONG, 30_000, MEDIUM, at_least(1), update=CLUSTER
    ),
    Setting(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1_073_741_824,
        LOW,
        at_least(1),
        update=CLUSTER,
    ),
    Setting("remote.log.index.file.cache.ttl.ms", LONG, 900_000, LOW, at_least(-1), internal=True),
    Setting(
        "remote.log.manager.copier.thread.pool.size", INT, 10, MEDIUM, at_least(1), update=CLUSTER
    ),
    Setting(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        MAX_LONG,
        MEDIUM,
        at_least(1),
        update=CLUSTER,
    ),
    Setting("remote.log.manager.copy.quota.window.num", INT, 11, MEDIUM, at_least(1)),
    Setting("remote.log.manager.copy.quota.window.size.seconds", INT, 1, MEDIUM, at_least(1)),
    Setting(
        "remote.log.manager.expiration.thread.pool.size",
        INT,
        10,
        MEDIUM,
        at_least(1),
        update=CLUSTER,
    ),
    Setting(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        MAX_LONG,
        MEDIUM,
        at_least(1),
        update=CLUSTER,
    ),
    Setting("remote.log.manager.fetch.quota.window.num", INT, 11, MEDIUM, at_least(1)),
    Setting("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, MEDIUM, at_least(1)),
    Setting(
        "remote.log.manager.follower.thread.pool.size", INT, 2, MEDIUM, at_least(1), update=CLUSTER
    ),
    Setting("remote.log.manager.task.interval.ms", LONG, 30_000, LOW, at_least(1)),
    Setting(
        "remote.log.manager.task.retry.backoff.max.ms",
        LONG,
        30_000,
        LOW,
        at_least(1),
        internal=True,
    ),
    Setting("remote.log.manager.task.retry.backoff.ms", LONG, 500, LOW, at_least(1), internal=True),
    Setting(
        "remote.log.manager.task.retry.jitter", DOUBLE, 0.2, LOW, between(0, 0.5), internal=True
    ),
    Setting("remote.log.manager.thread.pool.size", INT, 2, MEDIUM, at_least(1)),
    Setting("remote.log.metadata.custom.metadata.max.bytes", INT, 128, LOW, at_least(0)),
    Setting(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        MEDIUM,
        NonEmpty(),
    ),
    Setting("remote.log.metadata.manager.class.path", STRING, None, MEDIUM),
    Setting("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", MEDIUM, NonEmpty()),
    Setting("remote.log.metadata.manager.listener.name", STRING, None, MEDIUM, NonEmpty()),
    Setting("remote.log.reader.max.pending.tasks", INT, 100, MEDIUM, at_least(1)),
    Setting("remote.log.reader.threads", INT, 10, MEDIUM, at_least(1), update=CLUSTER),
    Setting("remote.log.storage.manager.class.name", STRING, None, MEDIUM, NonEmpty()),
    Setting("remote.log.storage.manager.class.path", STRING, None, MEDIUM),
    Setting("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", MEDIUM, NonEmpty()),
    Setting("remote.log.storage.system.enable", BOOLEAN, False, MEDIUM),
)
