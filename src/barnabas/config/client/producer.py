"""Settings of producers."""

from barnabas.config.checks import GzipLevel, ListOf, NonEmpty, OneOf, at_least, between
from barnabas.config.client import common, security
from barnabas.config.setting import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MAX_INT,
    MEDIUM,
    REQUIRED,
    STRING,
    Setting,
    declare,
)

_OWN = declare(
    Setting("acks", STRING, "all", LOW, OneOf("all", "-1", "0", "1")),
    Setting("batch.size", INT, 16_384, MEDIUM, at_least(0)),
    Setting("bootstrap.servers", LIST, REQUIRED, HIGH, ListOf()),
    Setting("buffer.memory", LONG, 33_554_432, HIGH, at_least(0)),
    Setting("client.id", STRING, "", MEDIUM),
    Setting("compression.gzip.level", INT, -1, MEDIUM, GzipLevel()),
    Setting("compression.lz4.level", INT, 9, MEDIUM, between(1, 17)),
    Setting(
        "compression.type", STRING, "none", HIGH, OneOf("none", "gzip", "snappy", "lz4", "zstd")
    ),
    Setting("compression.zstd.level", INT, 3, MEDIUM, between(-131_072, 22)),
    Setting("connections.max.idle.ms", LONG, 540_000, MEDIUM),
    Setting("delivery.timeout.ms", INT, 120_000, MEDIUM, at_least(0)),
    Setting("enable.idempotence", BOOLEAN, True, LOW),
    Setting("enable.metrics.push", BOOLEAN, True, LOW),
    Setting("interceptor.classes", LIST, (), LOW, ListOf(may_be_empty=True)),
    Setting("key.serializer", CLASS, REQUIRED, HIGH),
    Setting("linger.ms", LONG, 5, MEDIUM, at_least(0)),
    Setting("max.block.ms", LONG, 60_000, MEDIUM, at_least(0)),
    Setting("max.in.flight.requests.per.connection", INT, 5, LOW, at_least(1)),
    Setting("max.request.size", INT, 1_048_576, MEDIUM, at_least(0)),
    Setting("metadata.max.idle.ms", LONG, 300_000, LOW, at_least(5_000)),
    Setting("partitioner.adaptive.partitioning.enable", BOOLEAN, True, LOW),
    Setting("partitioner.availability.timeout.ms", LONG, 0, LOW, at_least(0)),
    Setting("partitioner.class", CLASS, None, MEDIUM),
    Setting("partitioner.ignore.keys", BOOLEAN, False, MEDIUM),
    Setting("receive.buffer.bytes", INT, 32_768, MEDIUM, at_least(-1)),
    Setting("retries", INT, MAX_INT, HIGH, between(0, MAX_INT)),
    Setting("transaction.timeout.ms", INT, 60_000, LOW),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, LOW),
    Setting("transactional.id", STRING, None, LOW, NonEmpty()),
    Setting("value.serializer", CLASS, REQUIRED, HIGH),
)

SETTINGS = common.SETTINGS | security.SETTINGS | _OWN
