"""Every setting name of clients, Java's and librdkafka's, and the field that it sets.

A field has one meaning. Where Java and librdkafka have several names for it, all of them are listed
and must not contradict each other; a `FallbackName` is less exact and is used only if none of the
others is set. Names that end in `.kbytes` are in KiB.
"""

from collections.abc import Mapping


class FallbackName(str):
    """A name that is used only if no other name of the field is set."""

    __slots__ = ()


Names = Mapping[str, tuple[str, ...]]

CONNECTION: Names = {
    "bootstrap_servers": ("bootstrap.servers", "metadata.broker.list"),
    "client_id": ("client.id",),
    # Java's request.timeout.ms is this; librdkafka's is how long a broker may wait for replicas.
    "request_timeout_ms": ("socket.timeout.ms", FallbackName("request.timeout.ms")),
    "connect_timeout_ms": ("socket.connection.setup.timeout.ms",),
    "connections_max_idle_ms": ("connections.max.idle.ms",),
    # Java's metadata.max.age.ms is this; librdkafka's is when a cache that stays old is dropped.
    "metadata_max_age_ms": (
        "topic.metadata.refresh.interval.ms",
        FallbackName("metadata.max.age.ms"),
    ),
    "retry_backoff_ms": ("retry.backoff.ms",),
    "retry_backoff_max_ms": ("retry.backoff.max.ms",),
    "reconnect_backoff_ms": ("reconnect.backoff.ms",),
    "reconnect_backoff_max_ms": ("reconnect.backoff.max.ms",),
    "send_buffer_bytes": ("send.buffer.bytes", "socket.send.buffer.bytes"),
    "receive_buffer_bytes": ("receive.buffer.bytes", "socket.receive.buffer.bytes"),
    "max_response_bytes": ("receive.message.max.bytes",),
    "allow_auto_create_topics": ("allow.auto.create.topics",),
    "default_api_timeout_ms": ("default.api.timeout.ms",),
    "statistics_interval_ms": ("statistics.interval.ms",),
}

PRODUCER: Names = {
    "acks": ("acks", "request.required.acks"),
    "ack_timeout_ms": ("request.timeout.ms",),
    "batch_size": ("batch.size",),
    "batch_num_messages": ("batch.num.messages",),
    "linger_ms": ("linger.ms", "queue.buffering.max.ms"),
    "buffer_messages": ("queue.buffering.max.messages",),
    "buffer_memory": ("buffer.memory", "queue.buffering.max.kbytes"),
    "max_block_ms": ("max.block.ms",),
    "max_request_size": ("max.request.size", "message.max.bytes"),
    "compression": ("compression.type", "compression.codec"),
    "compression_level": ("compression.level",),
    "delivery_timeout_ms": ("delivery.timeout.ms", "message.timeout.ms"),
    "enable_idempotence": ("enable.idempotence",),
    "max_in_flight": ("max.in.flight.requests.per.connection", "max.in.flight"),
    "retries": ("retries", "message.send.max.retries"),
    "partitioner": ("partitioner", "partitioner.class"),
    "sticky_linger_ms": ("sticky.partitioning.linger.ms",),
    "adaptive_partitioning": ("partitioner.adaptive.partitioning.enable",),
    "availability_timeout_ms": ("partitioner.availability.timeout.ms",),
    "ignore_keys": ("partitioner.ignore.keys",),
    "transactional_id": ("transactional.id",),
    "transaction_timeout_ms": ("transaction.timeout.ms",),
    "report_only_errors": ("delivery.report.only.error",),
    "interceptors": ("interceptor.classes", "interceptors"),
}

CODEC_LEVELS = {codec: f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
"""Java has a level for each codec: that of the codec in use is the compression.level."""

CONSUMER: Names = {
    "group_id": ("group.id",),
    "group_instance_id": ("group.instance.id",),
    "group_protocol": ("group.protocol",),
    "group_remote_assignor": ("group.remote.assignor",),
    "assignors": ("partition.assignment.strategy",),
    "session_timeout_ms": ("session.timeout.ms",),
    "heartbeat_interval_ms": ("heartbeat.interval.ms",),
    "max_poll_interval_ms": ("max.poll.interval.ms",),
    "enable_auto_commit": ("enable.auto.commit", "auto.commit.enable"),
    "auto_commit_interval_ms": ("auto.commit.interval.ms",),
    "enable_auto_offset_store": ("enable.auto.offset.store",),
    "auto_offset_reset": ("auto.offset.reset",),
    "isolation_level": ("isolation.level",),
    "check_crcs": ("check.crcs",),
    "client_rack": ("client.rack",),
    "fetch_min_bytes": ("fetch.min.bytes",),
    "fetch_max_bytes": ("fetch.max.bytes",),
    "fetch_max_wait_ms": ("fetch.max.wait.ms", "fetch.wait.max.ms"),
    "max_partition_fetch_bytes": ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
    "prefetch_bytes": ("queued.max.messages.kbytes",),
    "prefetch_messages": ("queued.min.messages",),
    "enable_partition_eof": ("enable.partition.eof",),
    "exclude_internal_topics": ("exclude.internal.topics",),
    "interceptors": ("interceptor.classes", "interceptors"),
}

ADMIN: Names = {"bootstrap_controllers": ("bootstrap.controllers",)}

SECURITY: Names = {
    "protocol": ("security.protocol",),
    "ca_location": ("ssl.ca.location",),
    "ca_pem": ("ssl.ca.pem", "ssl.truststore.certificates"),
    "crl_location": ("ssl.crl.location",),
    "certificate_location": ("ssl.certificate.location",),
    "certificate_pem": ("ssl.certificate.pem", "ssl.keystore.certificate.chain"),
    "key_location": ("ssl.key.location",),
    "key_pem": ("ssl.key.pem", "ssl.keystore.key"),
    "key_password": ("ssl.key.password",),
    "verify_certificates": ("enable.ssl.certificate.verification",),
    "verify_host": ("ssl.endpoint.identification.algorithm",),
    "cipher_suites": ("ssl.cipher.suites",),
    "tls_versions": ("ssl.enabled.protocols",),
    "mechanism": ("sasl.mechanism", "sasl.mechanisms"),
    "username": ("sasl.username",),
    "password": ("sasl.password",),
    "kerberos_service": ("sasl.kerberos.service.name",),
    "kerberos_principal": ("sasl.kerberos.principal",),
    "kerberos_keytab": ("sasl.kerberos.keytab",),
    "oauthbearer_config": ("sasl.oauthbearer.config",),
}

JAVA_STORES = (
    "ssl.truststore.location",
    "ssl.truststore.type",
    "ssl.truststore.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.keystore.password",
    "sasl.jaas.config",
)
"""Java's names for files that hold several of the above; read by `security.py`."""

OAUTH_TOKEN_SETTINGS = (
    "enable.sasl.oauthbearer.unsecure.jwt",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
)
"""Where OAUTHBEARER gets its tokens if there is no oauth_cb; read by `oauth_tokens.py`."""

COMMON_CALLBACKS = ("error_cb", "stats_cb", "throttle_cb")
PRODUCER_CALLBACKS = ("on_delivery",)
CONSUMER_CALLBACKS = ("on_commit",)

NO_EFFECT: Mapping[str, tuple[str, ...]] = {
    "logging is Python's own, under the name barnabas": (
        "debug",
        "log.connection.close",
        "log.queue",
        "log.thread.name",
        "log_level",
    ),
    "metrics are read with metrics() and stats_cb, and are not pushed to brokers": (
        "enable.metrics.push",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    "serializers are Python's: give them to SerializingProducer and DeserializingConsumer": (
        "key.deserializer",
        "key.serializer",
        "value.deserializer",
        "value.serializer",
    ),
    "it belongs to the implementation of another client": (
        "builtin.features",
        "config.providers",
        "consume.callback.max.messages",
        "enable.random.seed",
        "enabled_events",
        "internal.termination.signal",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "message.copy.max.bytes",
        "plugin.library.paths",
        "queue.buffering.backpressure.threshold",
        "security.providers",
        "socket.blocking.max.ms",
        "socket.max.fails",
    ),
    "the versions of every broker are requested with ApiVersions": (
        "api.version.fallback.ms",
        "api.version.request",
        "api.version.request.timeout.ms",
        "broker.version.fallback",
    ),
    "offsets are stored in the group, not in files": (
        "offset.store.method",
        "offset.store.path",
        "offset.store.sync.interval.ms",
    ),
    "addresses are resolved at each connection, and all of them are tried": (
        "broker.address.family",
        "broker.address.ttl",
        "client.dns.lookup",
    ),
    "sockets send at once, and the system keeps them alive": (
        "socket.keepalive.enable",
        "socket.nagle.disable",
    ),
    "metadata is requested when it is needed, with the backoff of retries": (
        "coordinator.query.interval.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "reconnect.backoff.jitter.ms",
        "socket.connection.setup.timeout.max.ms",
        "topic.blacklist",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.sparse",
    ),
    "poll() returns one record, and consume() as many as requested": ("max.poll.records",),
    "fetches are paced by consumption": (
        "fetch.error.backoff.ms",
        "fetch.queue.backoff.ms",
    ),
    "idempotence provides order and completeness": (
        "enable.gapless.guarantee",
        "produce.offset.report",
        "queuing.strategy",
        "transaction.two.phase.commit.enable",
    ),
    "there is one type of group protocol, and no share consumer yet": (
        "group.protocol.type",
        "share.acknowledgement.mode",
        "share.acquire.mode",
    ),
    "TLS is the ssl module of Python": (
        "https.ca.location",
        "https.ca.pem",
        "ssl.ca.certificate.stores",
        "ssl.curves.list",
        "ssl.engine.factory.class",
        "ssl.engine.id",
        "ssl.engine.location",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.providers",
        "ssl.secure.random.implementation",
        "ssl.sigalgs.list",
        "ssl.trustmanager.algorithm",
    ),
    "tokens come from oauth_cb or client credentials, and Kerberos tickets from a keytab or a "
    "ticket cache": (
        "sasl.client.callback.handler.class",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.metadata.authentication.type",
        "sasl.oauthbearer.scope.claim.name",
    ),
}
"""Accepted names without effect, by the reason."""
