"""What an instance of the registry has to be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_PORT = 8081


@dataclass(slots=True, frozen=True)
class RegistrySettings:
    bootstrap_servers: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0 for any that is free
    advertised_host: str | None = None  # where other instances reach this one
    topic: str = "_schemas"
    group_id: str = "schema-registry"
    replication_factor: int = 3  # or as many as there are brokers
    mode_mutability: bool = True
    leader_eligibility: bool = True
    timeout_ms: int = 10_000  # of a write, and of passing one on
    start_timeout_ms: int = 60_000
    session_timeout_ms: int = 10_000  # for so long one that has died is waited for
    client: Mapping[str, object] = field(default_factory=dict)  # settings of the Kafka clients

    @property
    def kafka_client_config(self) -> dict[str, object]:
        """What every client of the brokers is made with."""
        return {**self.client, "bootstrap.servers": self.bootstrap_servers}

    @property
    def reachable_host(self) -> str:
        """What other instances call this one; an address for all is nobody's address."""
        anybody = {"0.0.0.0": "127.0.0.1", "::": "::1"}
        return self.advertised_host or anybody.get(self.host, self.host)
