"""The values an image is made of: topics, partitions, brokers, controllers and the rest.

All are frozen. Several images share them, so copying an image copies references only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

NO_LEADER = -1

Replicas = tuple[int, ...]
Directories = tuple[bytes, ...]


class DirectoryId:
    """The ids that stand for something other than one log directory (KIP-858)."""

    MIGRATING = bytes(16)
    UNASSIGNED = (1).to_bytes(16, "big")
    LOST = (2).to_bytes(16, "big")

    @staticmethod
    def is_reserved(directory_id: bytes) -> bool:
        """Kafka keeps the first hundred ids for such meanings."""
        return int.from_bytes(directory_id, "big") < 100


class RecoveryState(IntEnum):
    """Whether a leader elected uncleanly has finished looking at what it has."""

    RECOVERED = 0
    RECOVERING = 1


@dataclass(slots=True, frozen=True)
class PartitionRegistration:
    """Who holds a partition and who leads it."""

    replicas: Replicas
    isr: Replicas
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: Directories
    removing: Replicas = ()
    adding: Replicas = ()
    recovery_state: int = RecoveryState.RECOVERED
    elr: Replicas = ()
    last_known_elr: Replicas = ()

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)

    def directory_of(self, broker_id: int) -> bytes:
        """The log directory of one replica; unassigned while its broker has not said."""
        for replica, directory in zip(self.replicas, self.directories, strict=False):
            if replica == broker_id:
                return directory
        return DirectoryId.UNASSIGNED


@dataclass(slots=True, frozen=True)
class TopicImage:
    """A topic and its partitions.

    `partitions` belongs to the image that holds this value; only that image changes it.
    """

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionRegistration] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class ListenerEndpoint:
    """Where a broker or a controller listens."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(slots=True, frozen=True)
class FeatureLevelRange:
    """The levels of one feature that a node can run at."""

    min: int
    max: int

    def __contains__(self, level: int) -> bool:
        return self.min <= level <= self.max


@dataclass(slots=True, frozen=True)
class BrokerRegistration:
    """A registered broker."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[ListenerEndpoint, ...]
    features: Mapping[str, FeatureLevelRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: Directories
    cordoned_log_dirs: Directories | None = None

    @property
    def active(self) -> bool:
        """Whether it may lead and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory_id: bytes) -> bool:
        """Whether replicas in that directory can be served.

        A broker that names no directories registered before there were directory ids; a reserved
        id other than "lost" only says that the broker has not yet told where the replica is.
        """
        if directory_id in (DirectoryId.UNASSIGNED, DirectoryId.MIGRATING):
            return True
        return directory_id != DirectoryId.LOST and (
            not self.log_dirs or directory_id in self.log_dirs
        )


@dataclass(slots=True, frozen=True)
class ControllerRegistration:
    """A registered controller."""

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[ListenerEndpoint, ...]
    features: Mapping[str, FeatureLevelRange]


def endpoint_of(node: BrokerRegistration | ControllerRegistration, listener: str) -> ListenerEndpoint | None:
    """Where a node listens under that name; None if it does not."""
    return next((endpoint for endpoint in node.endpoints if endpoint.name == listener), None)


@dataclass(slots=True, frozen=True)
class AclEntry:
    """One access control entry."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(slots=True, frozen=True)
class ScramCredential:
    """What is kept of a user's password for one SCRAM mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(slots=True, frozen=True)
class DelegationToken:
    """A delegation token, without the secret that is derived from its id."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


ConfigResource = tuple[int, str]
"""The type of a resource (2 topic, 4 broker, ...) and its name."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs sorted by type; the name None stands for the default entity."""
