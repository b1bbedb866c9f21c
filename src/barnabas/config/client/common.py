"""Settings of all clients: connections, retries and metadata."""

from barnabas.config.checks import ListOf, OneOf, at_least
from barnabas.config.setting import (
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    STRING,
    Setting,
    declare,
)

SETTINGS = declare(
    Setting(
        "client.dns.lookup",
        STRING,
        "use_all_dns_ips",
        MEDIUM,
        OneOf("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    Setting("config.providers", LIST, (), LOW, ListOf(may_be_empty=True)),
    Setting("metadata.max.age.ms", LONG, 300_000, LOW, at_least(0)),
    Setting("metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, LOW, at_least(0)),
    Setting(
        "metadata.recovery.strategy",
        STRING,
        "rebootstrap",
        LOW,
        OneOf("REBOOTSTRAP", "NONE", ignore_case=True),
    ),
    Setting(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        LOW,
        ListOf(may_be_empty=True),
    ),
    Setting("metrics.num.samples", INT, 2, LOW, at_least(1)),
    Setting("metrics.recording.level", STRING, "INFO", LOW, OneOf("INFO", "DEBUG", "TRACE")),
    Setting("metrics.sample.window.ms", LONG, 30_000, LOW, at_least(0)),
    Setting("reconnect.backoff.max.ms", LONG, 1_000, LOW, at_least(0)),
    Setting("reconnect.backoff.ms", LONG, 50, LOW, at_least(0)),
    Setting("request.timeout.ms", INT, 30_000, MEDIUM, at_least(0)),
    Setting("retry.backoff.max.ms", LONG, 1_000, LOW, at_least(0)),
    Setting("retry.backoff.ms", LONG, 100, LOW, at_least(0)),
    Setting("send.buffer.bytes", INT, 131_072, MEDIUM, at_least(-1)),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30_000, MEDIUM),
    Setting("socket.connection.setup.timeout.ms", LONG, 10_000, MEDIUM),
)
