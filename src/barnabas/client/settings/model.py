"""The settings of each kind of client: typed fields with their defaults.

Defaults are librdkafka's where it has the setting, because users come from it; except that
producers are idempotent and hash keys with murmur2, like Java's. `names.py` has the names that set
a field. A limit that is off is a large number: no value means infinity.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.config.addresses import Endpoint


@dataclass(slots=True, frozen=True, kw_only=True)
class Security:
    """How connections are secured: TLS by the stdlib's ssl, and SASL."""

    protocol: str = "PLAINTEXT"  # SSL, SASL_PLAINTEXT, SASL_SSL
    ca_location: str | None = None
    ca_pem: str | None = None
    crl_location: str | None = None
    certificate_location: str | None = None
    certificate_pem: str | None = None
    key_location: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    verify_certificates: bool = True
    verify_host: bool = True
    cipher_suites: str | None = None  # as OpenSSL writes them, with colons between
    tls_versions: tuple[str, ...] = ()  # TLSv1.2, TLSv1.3; none: those of the ssl module
    mechanism: str = "PLAIN"  # SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    is_token: bool = False  # user name and password are those of a delegation token
    kerberos_service: str = "kafka"
    kerberos_principal: str | None = None
    kerberos_keytab: str | None = None  # None: the tickets of kinit
    oauth_cb: Callable[[str], Any] | None = None
    oauthbearer_config: str = ""


@dataclass(slots=True, frozen=True, kw_only=True)
class ConnectionSettings:
    """The settings of every client."""

    bootstrap_servers: tuple[Endpoint, ...] = ()
    client_id: str = "barnabas"
    request_timeout_ms: int = 30_000  # Java's; librdkafka's socket.timeout.ms has 60 s
    connect_timeout_ms: int = 30_000
    connections_max_idle_ms: int = 0  # 0: never closed
    metadata_max_age_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 100
    reconnect_backoff_max_ms: int = 10_000
    send_buffer_bytes: int = 0  # 0: the system's
    receive_buffer_bytes: int = 0
    max_response_bytes: int = 100_000_000
    allow_auto_create_topics: bool = False  # producers: True
    default_api_timeout_ms: int = 60_000
    security: Security = field(default_factory=Security)
    statistics_interval_ms: int = 0
    error_cb: Callable[[Any], None] | None = None
    stats_cb: Callable[[str], None] | None = None
    throttle_cb: Callable[[Any], None] | None = None
    logger: Any = None


@dataclass(slots=True, frozen=True, kw_only=True)
class ProducerSettings(ConnectionSettings):
    allow_auto_create_topics: bool = True
    acks: int = -1
    ack_timeout_ms: int = 30_000  # how long the broker waits for its replicas
    batch_size: int = 1_000_000
    batch_num_messages: int = 10_000
    linger_ms: float = 5
    buffer_messages: int = 100_000
    buffer_memory: int = 1_073_741_824
    max_block_ms: int | None = None  # None: a full buffer is a BufferError at once
    max_request_size: int = 1_000_000
    compression: str = "none"
    compression_level: int | None = None
    delivery_timeout_ms: int = 300_000
    enable_idempotence: bool = True
    max_in_flight: int = 5
    retries: int = 2_147_483_647
    partitioner: str | Callable[..., int] = "murmur2_random"
    sticky_linger_ms: int = 10  # 0: a partition at random for each record
    adaptive_partitioning: bool = True  # KIP-794: slower partitions get less
    availability_timeout_ms: int = 0
    ignore_keys: bool = False
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    on_delivery: Callable[[Any, Any], None] | None = None
    report_only_errors: bool = False
    interceptors: tuple[Any, ...] = ()


@dataclass(slots=True, frozen=True, kw_only=True)
class ConsumerSettings(ConnectionSettings):
    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: str = "classic"
    group_remote_assignor: str | None = None
    assignors: tuple[str, ...] = ("range", "roundrobin")  # sticky, cooperative-sticky
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    enable_auto_offset_store: bool = True
    auto_offset_reset: str = "latest"  # earliest, none (error), by_duration:PT1H
    isolation_level: str = "read_committed"
    check_crcs: bool = False
    client_rack: str = ""
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    prefetch_bytes: int = 67_108_864
    prefetch_messages: int = 100_000
    enable_partition_eof: bool = False
    exclude_internal_topics: bool = True
    on_commit: Callable[[Any, Any], None] | None = None
    interceptors: tuple[Any, ...] = ()


@dataclass(slots=True, frozen=True, kw_only=True)
class AdminSettings(ConnectionSettings):
    bootstrap_controllers: tuple[Endpoint, ...] = ()
