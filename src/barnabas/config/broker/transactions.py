"""Settings of transactions and producer ids."""

from barnabas.config.checks import at_least
from barnabas.config.setting import (
    BOOLEAN,
    CLUSTER,
    HIGH,
    INT,
    LOW,
    SHORT,
    Setting,
    declare,
)

SETTINGS = declare(
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, HIGH, at_least(0)),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, HIGH, at_least(1)),
    Setting(
        "producer.id.expiration.check.interval.ms", INT, 600_000, LOW, at_least(1), internal=True
    ),
    Setting("producer.id.expiration.ms", INT, 86_400_000, LOW, at_least(1), update=CLUSTER),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, LOW, at_least(1)
    ),
    Setting("transaction.max.timeout.ms", INT, 900_000, HIGH, at_least(1)),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, LOW, update=CLUSTER),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        LOW,
        at_least(1),
    ),
    Setting("transaction.state.log.load.buffer.size", INT, 5_242_880, HIGH, at_least(1)),
    Setting("transaction.state.log.min.isr", INT, 2, HIGH, at_least(1)),
    Setting("transaction.state.log.num.partitions", INT, 50, HIGH, at_least(1)),
    Setting("transaction.state.log.replication.factor", SHORT, 3, HIGH, at_least(1)),
    Setting("transaction.state.log.segment.bytes", INT, 104_857_600, HIGH, at_least(1)),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, LOW),
    Setting("transactional.id.expiration.ms", INT, 604_800_000, HIGH, at_least(1)),
)
