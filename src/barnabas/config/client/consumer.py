"""Settings of consumers and share consumers."""

from barnabas.config.checks import ListOf, NonEmpty, OffsetReset, OneOf, at_least
from barnabas.config.client import common, security
from barnabas.config.setting import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    REQUIRED,
    STRING,
    Setting,
    declare,
)

_OWN = declare(
    Setting("allow.auto.create.topics", BOOLEAN, True, MEDIUM),
    Setting("auto.commit.interval.ms", INT, 5_000, LOW, at_least(0)),
    Setting(
        "auto.offset.reset", STRING, "latest", MEDIUM, OffsetReset("latest", "earliest", "none")
    ),
    Setting("bootstrap.servers", LIST, REQUIRED, HIGH, ListOf()),
    Setting("check.crcs", BOOLEAN, True, LOW),
    Setting("client.id", STRING, "", LOW),
    Setting("client.rack", STRING, "", LOW),
    Setting("connections.max.idle.ms", LONG, 540_000, MEDIUM),
    Setting("default.api.timeout.ms", INT, 60_000, MEDIUM, at_least(0)),
    Setting("enable.auto.commit", BOOLEAN, True, MEDIUM),
    Setting("enable.metrics.push", BOOLEAN, True, LOW),
    Setting("exclude.internal.topics", BOOLEAN, True, MEDIUM),
    Setting("fetch.max.bytes", INT, 52_428_800, MEDIUM, at_least(0)),
    Setting("fetch.max.wait.ms", INT, 500, LOW, at_least(0)),
    Setting("fetch.min.bytes", INT, 1, HIGH, at_least(0)),
    Setting("group.id", STRING, None, HIGH),
    Setting("group.instance.id", STRING, None, MEDIUM, NonEmpty()),
    Setting(
        "group.protocol", STRING, "classic", HIGH, OneOf("CONSUMER", "CLASSIC", ignore_case=True)
    ),
    Setting("group.remote.assignor", STRING, None, MEDIUM),
    Setting("heartbeat.interval.ms", INT, 3_000, HIGH),
    Setting("interceptor.classes", LIST, (), LOW, ListOf(may_be_empty=True)),
    Setting(
        "internal.throw.on.fetch.stable.offset.unsupported", BOOLEAN, False, LOW, internal=True
    ),
    Setting(
        "isolation.level",
        STRING,
        "read_uncommitted",
        MEDIUM,
        OneOf("read_committed", "read_uncommitted"),
    ),
    Setting("key.deserializer", CLASS, REQUIRED, HIGH),
    Setting("max.partition.fetch.bytes", INT, 1_048_576, HIGH, at_least(0)),
    Setting("max.poll.interval.ms", INT, 300_000, MEDIUM, at_least(1)),
    Setting("max.poll.records", INT, 500, MEDIUM, at_least(1)),
    Setting(
        "partition.assignment.strategy",
        LIST,
        (
            "org.apache.kafka.clients.consumer.RangeAssignor",
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        ),
        MEDIUM,
        ListOf(may_be_empty=True),
    ),
    Setting("receive.buffer.bytes", INT, 65_536, MEDIUM, at_least(-1)),
    Setting("session.timeout.ms", INT, 45_000, HIGH),
    Setting(
        "share.acknowledgement.mode",
        STRING,
        "implicit",
        MEDIUM,
        OneOf("IMPLICIT", "EXPLICIT", ignore_case=True),
    ),
    Setting(
        "share.acquire.mode",
        STRING,
        "BATCH_OPTIMIZED",
        MEDIUM,
        OneOf("BATCH_OPTIMIZED", "RECORD_LIMIT", ignore_case=True),
    ),
    Setting("value.deserializer", CLASS, REQUIRED, HIGH),
)

SETTINGS = common.SETTINGS | security.SETTINGS | _OWN
