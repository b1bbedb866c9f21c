"""Settings of librdkafka 2.16, and so of confluent_kafka: names, types, ranges and defaults.

Global and topic properties are in one list because a client accepts both in one dictionary.
`client/settings/names.py` says what our clients do with each name.
"""

from collections.abc import Iterable

from barnabas.config.checks import Check, OneOf, Range
from barnabas.config.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LOW,
    PASSWORD,
    STRING,
    Setting,
    declare,
)


class Subset(Check):
    """A list of which every element is one of `values`."""

    __slots__ = ("_values",)

    def __init__(self, *values: str) -> None:
        self._values = values
        super().__init__(f"[{', '.join(values)}]")

    def find_problem(self, value: Iterable[str]) -> str | None:
        wrong = [element for element in value if element not in self._values]
        return f"{', '.join(wrong)} is not among {self.allowed}" if wrong else None


def integer(name: str, default: int, low: int, high: int) -> Setting:
    return Setting(name, INT, default, LOW, Range(low, high))


def decimal(name: str, default: float, low: float, high: float) -> Setting:
    return Setting(name, DOUBLE, default, LOW, Range(low, high))


def flag(name: str, default: bool) -> Setting:
    return Setting(name, BOOLEAN, default, LOW)


def text(name: str, default: str | None = None) -> Setting:
    return Setting(name, STRING, default, LOW)


def secret(name: str) -> Setting:
    return Setting(name, PASSWORD, None, LOW)


def choice(name: str, default: str, values: str) -> Setting:
    return Setting(name, STRING, default, LOW, OneOf(*values.split(), ignore_case=True))


def listed(name: str, *default: str) -> Setting:
    return Setting(name, LIST, default, LOW)


def flags(name: str, values: str) -> Setting:
    return Setting(name, LIST, (), LOW, Subset(*values.split()))


_OWN = declare(
    # The cluster and its metadata.
    text("client.id", "rdkafka"),
    listed("metadata.broker.list"),
    integer("message.max.bytes", 1_000_000, 1000, 1_000_000_000),
    integer("message.copy.max.bytes", 65_535, 0, 1_000_000_000),
    integer("receive.message.max.bytes", 100_000_000, 1000, 2_147_483_647),
    integer("max.in.flight.requests.per.connection", 1_000_000, 1, 1_000_000),
    choice("metadata.recovery.strategy", "rebootstrap", "none rebootstrap"),
    integer("metadata.recovery.rebootstrap.trigger.ms", 300_000, 0, 2_147_483_647),
    integer("topic.metadata.refresh.interval.ms", 300_000, -1, 3_600_000),
    integer("metadata.max.age.ms", 900_000, 1, 86_400_000),
    integer("topic.metadata.refresh.fast.interval.ms", 100, 1, 60_000),
    integer("topic.metadata.refresh.fast.cnt", 10, 0, 1000),
    flag("topic.metadata.refresh.sparse", True),
    integer("topic.metadata.propagation.max.ms", 30_000, 0, 3_600_000),
    text("topic.blacklist"),
    flag("api.version.request", True),
    integer("api.version.request.timeout.ms", 10_000, 1, 300_000),
    integer("api.version.fallback.ms", 0, 0, 604_800_000),
    text("broker.version.fallback", "0.10.0"),
    flag("allow.auto.create.topics", False),
    integer("retry.backoff.ms", 100, 1, 300_000),
    integer("retry.backoff.max.ms", 1000, 1, 300_000),
    # Connections.
    integer("socket.timeout.ms", 60_000, 10, 300_000),
    integer("socket.blocking.max.ms", 1000, 1, 60_000),
    integer("socket.send.buffer.bytes", 0, 0, 100_000_000),
    integer("socket.receive.buffer.bytes", 0, 0, 100_000_000),
    flag("socket.keepalive.enable", False),
    flag("socket.nagle.disable", True),
    integer("socket.max.fails", 1, 0, 1_000_000),
    integer("broker.address.ttl", 1000, 0, 86_400_000),
    choice("broker.address.family", "any", "any v4 v6"),
    integer("socket.connection.setup.timeout.ms", 30_000, 1000, 2_147_483_647),
    integer("connections.max.idle.ms", 0, 0, 2_147_483_647),
    integer("reconnect.backoff.jitter.ms", 0, 0, 3_600_000),
    integer("reconnect.backoff.ms", 100, 0, 3_600_000),
    integer("reconnect.backoff.max.ms", 10_000, 0, 3_600_000),
    choice(
        "client.dns.lookup",
        "use_all_dns_ips",
        "use_all_dns_ips resolve_canonical_bootstrap_servers_only",
    ),
    # Logs, statistics and callbacks.
    flags(
        "builtin.features",
        "gzip snappy ssl sasl regex lz4 sasl_gssapi "
        "sasl_plain sasl_scram plugins zstd sasl_oauthbearer http oidc",
    ),
    flags(
        "debug",
        "generic broker topic metadata feature queue msg protocol cgrp security "
        "fetch interceptor plugin consumer admin eos mock assignor conf telemetry all",
    ),
    integer("statistics.interval.ms", 0, 0, 86_400_000),
    integer("enabled_events", 0, 0, 2_147_483_647),
    integer("log_level", 6, 0, 7),
    flag("log.queue", False),
    flag("log.thread.name", True),
    flag("enable.random.seed", True),
    flag("log.connection.close", True),
    integer("internal.termination.signal", 0, 0, 128),
    text("plugin.library.paths"),
    flag("enable.metrics.push", True),
    # TLS.
    choice("security.protocol", "plaintext", "plaintext ssl sasl_plaintext sasl_ssl"),
    text("ssl.cipher.suites"),
    text("ssl.curves.list"),
    text("ssl.sigalgs.list"),
    text("ssl.key.location"),
    secret("ssl.key.password"),
    secret("ssl.key.pem"),
    text("ssl.certificate.location"),
    text("ssl.certificate.pem"),
    text("ssl.ca.location"),
    text("https.ca.location"),
    text("https.ca.pem"),
    text("ssl.ca.pem"),
    text("ssl.ca.certificate.stores", "Root"),
    text("ssl.crl.location"),
    text("ssl.keystore.location"),
    secret("ssl.keystore.password"),
    text("ssl.providers"),
    text("ssl.engine.location"),
    text("ssl.engine.id", "dynamic"),
    flag("enable.ssl.certificate.verification", True),
    choice("ssl.endpoint.identification.algorithm", "https", "none https"),
    # SASL.
    text("sasl.mechanisms", "GSSAPI"),
    text("sasl.kerberos.service.name", "kafka"),
    text("sasl.kerberos.principal", "kafkaclient"),
    text(
        "sasl.kerberos.kinit.cmd",
        'kinit -R -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}',
    ),
    text("sasl.kerberos.keytab"),
    integer("sasl.kerberos.min.time.before.relogin", 60_000, 0, 86_400_000),
    text("sasl.username"),
    secret("sasl.password"),
    text("sasl.oauthbearer.config"),
    flag("enable.sasl.oauthbearer.unsecure.jwt", False),
    choice("sasl.oauthbearer.method", "default", "default oidc"),
    text("sasl.oauthbearer.client.id"),
    secret("sasl.oauthbearer.client.secret"),
    text("sasl.oauthbearer.scope"),
    text("sasl.oauthbearer.extensions"),
    text("sasl.oauthbearer.token.endpoint.url"),
    text("sasl.oauthbearer.sub.claim.name", "sub"),
    choice(
        "sasl.oauthbearer.grant.type",
        "client_credentials",
        "client_credentials urn:ietf:params:oauth:grant-type:jwt-bearer",
    ),
    choice("sasl.oauthbearer.assertion.algorithm", "RS256", "RS256 ES256"),
    text("sasl.oauthbearer.assertion.private.key.file"),
    secret("sasl.oauthbearer.assertion.private.key.passphrase"),
    secret("sasl.oauthbearer.assertion.private.key.pem"),
    text("sasl.oauthbearer.assertion.file"),
    text("sasl.oauthbearer.assertion.claim.aud"),
    integer("sasl.oauthbearer.assertion.claim.exp.seconds", 300, 1, 2_147_483_647),
    text("sasl.oauthbearer.assertion.claim.iss"),
    flag("sasl.oauthbearer.assertion.claim.jti.include", False),
    integer("sasl.oauthbearer.assertion.claim.nbf.seconds", 60, 0, 2_147_483_647),
    text("sasl.oauthbearer.assertion.claim.sub"),
    text("sasl.oauthbearer.assertion.jwt.template.file"),
    choice("sasl.oauthbearer.metadata.authentication.type", "none", "none azure_imds aws_iam"),
    # Consumers.
    text("group.id"),
    text("group.instance.id"),
    listed("partition.assignment.strategy", "range", "roundrobin"),
    integer("session.timeout.ms", 45_000, 1, 3_600_000),
    integer("heartbeat.interval.ms", 3000, 1, 3_600_000),
    text("group.protocol.type", "consumer"),
    choice("group.protocol", "classic", "classic consumer"),
    text("group.remote.assignor"),
    integer("coordinator.query.interval.ms", 600_000, 1, 3_600_000),
    integer("max.poll.interval.ms", 300_000, 1, 86_400_000),
    flag("enable.auto.commit", True),
    integer("auto.commit.interval.ms", 5000, 0, 86_400_000),
    flag("enable.auto.offset.store", True),
    integer("queued.min.messages", 100_000, 1, 10_000_000),
    integer("queued.max.messages.kbytes", 65_536, 1, 2_097_151),
    integer("fetch.wait.max.ms", 500, 0, 300_000),
    integer("fetch.queue.backoff.ms", 1000, 0, 300_000),
    integer("fetch.message.max.bytes", 1_048_576, 1, 1_000_000_000),
    integer("fetch.max.bytes", 52_428_800, 0, 2_147_483_135),
    integer("fetch.min.bytes", 1, 0, 2_147_483_647),
    integer("fetch.error.backoff.ms", 500, 0, 300_000),
    choice("offset.store.method", "broker", "none file broker"),
    choice("isolation.level", "read_committed", "read_uncommitted read_committed"),
    flag("enable.partition.eof", False),
    flag("check.crcs", False),
    text("client.rack"),
    integer("max.poll.records", 500, 1, 2_147_483_647),
    text("share.acknowledgement.mode", "implicit"),
    flag("auto.commit.enable", True),
    choice("auto.offset.reset", "largest", "smallest earliest beginning largest latest end error"),
    text("offset.store.path", "."),
    integer("offset.store.sync.interval.ms", -1, -1, 86_400_000),
    integer("consume.callback.max.messages", 0, 0, 1_000_000),
    # Producers.
    text("transactional.id"),
    integer("transaction.timeout.ms", 60_000, 1000, 2_147_483_647),
    flag("enable.idempotence", False),
    flag("enable.gapless.guarantee", False),
    integer("queue.buffering.max.messages", 100_000, 0, 2_147_483_647),
    integer("queue.buffering.max.kbytes", 1_048_576, 1, 2_147_483_647),
    decimal("queue.buffering.max.ms", 5, 0, 900_000),
    integer("message.send.max.retries", 2_147_483_647, 0, 2_147_483_647),
    integer("queue.buffering.backpressure.threshold", 1, 1, 1_000_000),
    choice("compression.codec", "none", "none gzip snappy lz4 zstd"),
    integer("batch.num.messages", 10_000, 1, 1_000_000),
    integer("batch.size", 1_000_000, 1, 2_147_483_647),
    flag("delivery.report.only.error", False),
    integer("sticky.partitioning.linger.ms", 10, 0, 900_000),
    integer("request.required.acks", -1, -1, 1000),
    integer("request.timeout.ms", 30_000, 1, 900_000),
    integer("message.timeout.ms", 300_000, 0, 2_147_483_647),
    choice("queuing.strategy", "fifo", "fifo lifo"),
    flag("produce.offset.report", False),
    text("partitioner", "consistent_random"),
    integer("compression.level", -1, -1, 12),
)

ALIASES = {
    "bootstrap.servers": "metadata.broker.list",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "sasl.mechanism": "sasl.mechanisms",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "linger.ms": "queue.buffering.max.ms",
    "retries": "message.send.max.retries",
    "compression.type": "compression.codec",
    "acks": "request.required.acks",
    "delivery.timeout.ms": "message.timeout.ms",
}
"""Other names of the same setting."""

SETTINGS = _OWN | {alias: _OWN[name]._replace(name=alias) for alias, name in ALIASES.items()}

DEDICATED = {
    "dr_cb": "on_delivery",
    "dr_msg_cb": "on_delivery",
    "log_cb": "logger",
    "oauthbearer_token_refresh_cb": "oauth_cb",
    "offset_commit_cb": "on_commit",
    "partitioner_cb": "partitioner",
    "rebalance_cb": "on_assign, on_revoke and on_lost of subscribe()",
    "default_topic_conf": "default.topic.config",
    "ssl_ca": "ssl.ca.pem",
    "ssl_certificate": "ssl.certificate.pem",
    "ssl_key": "ssl.key.pem",
}
"""Settings that C programs set by dedicated functions, and what a Python program uses instead."""
