"""Settings of replicas: fetching from the leader, in-sync replicas, elections."""

from barnabas.config.checks import at_least
from barnabas.config.setting import (
    BOOLEAN,
    CLUSTER,
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    STRING,
    Setting,
    declare,
)

SETTINGS = declare(
    Setting("alter.log.dirs.replication.quota.window.num", INT, 11, LOW, at_least(1)),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, LOW, at_least(1)),
    Setting("auto.leader.rebalance.enable", BOOLEAN, True, HIGH),
    Setting("default.replication.factor", INT, 1, MEDIUM),
    Setting("leader.imbalance.check.interval.seconds", LONG, 300, HIGH, at_least(1)),
    Setting("min.insync.replicas", INT, 1, HIGH, at_least(1), update=CLUSTER),
    Setting("num.replica.fetchers", INT, 1, HIGH, at_least(1), update=CLUSTER),
    Setting("replica.fetch.backoff.ms", INT, 1_000, MEDIUM, at_least(0)),
    Setting("replica.fetch.max.bytes", INT, 1_048_576, MEDIUM, at_least(0)),
    Setting("replica.fetch.min.bytes", INT, 1, HIGH),
    Setting("replica.fetch.response.max.bytes", INT, 10_485_760, MEDIUM, at_least(0)),
    Setting("replica.fetch.wait.max.ms", INT, 500, HIGH),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, HIGH),
    Setting("replica.lag.time.max.ms", LONG, 30_000, HIGH),
    Setting("replica.selector.class", STRING, None, MEDIUM),
    Setting("replica.socket.receive.buffer.bytes", INT, 65_536, HIGH),
    Setting("replica.socket.timeout.ms", INT, 30_000, HIGH),
    Setting("replication.quota.window.num", INT, 11, LOW, at_least(1)),
    Setting("replication.quota.window.size.seconds", INT, 1, LOW, at_least(1)),
    Setting("unclean.leader.election.enable", BOOLEAN, False, HIGH, update=CLUSTER),
    Setting(
        "unclean.leader.election.interval.ms", LONG, 300_000, MEDIUM, at_least(1), internal=True
    ),
)
