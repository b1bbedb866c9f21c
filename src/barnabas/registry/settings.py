"""The settings of a registry instance."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.registry.listener_settings import RegistryListener

DEFAULT_PORT = 8081


@dataclass(slots=True, frozen=True)
class RegistrySettings:
    bootstrap_servers: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0 selects a free port
    advertised_host: str | None = None  # at which other instances reach this one
    topic: str = "_schemas"
    group_id: str = "schema-registry"
    replication_factor: int = 3  # at most the number of brokers
    mode_mutability: bool = True
    leader_eligibility: bool = True
    timeout_ms: int = 10_000  # of a write, and of forwarding one
    start_timeout_ms: int = 60_000
    session_timeout_ms: int = 10_000  # until a dead instance is removed from the group
    client: Mapping[str, object] = field(default_factory=dict)  # settings of the Kafka clients
    listener: RegistryListener = field(default_factory=RegistryListener)  # TLS, authentication

    @property
    def kafka_client_config(self) -> dict[str, object]:
        """The configuration of every Kafka client of the registry."""
        return {**self.client, "bootstrap.servers": self.bootstrap_servers}

    @property
    def reachable_host(self) -> str:
        """The host that other instances use. A wildcard address is replaced by the loopback one."""
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}
        return self.advertised_host or loopback.get(self.host, self.host)
