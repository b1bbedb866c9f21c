"""The values of an image: topics, partitions, brokers, controllers and the rest.

They are frozen and shared between images, so that a copy of an image copies references only. The
exception is the dictionary of partitions in a topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

NO_LEADER = -1

Replicas = tuple[int, ...]
Directories = tuple[bytes, ...]


class DirectoryId:
    """The reserved ids of log directories (KIP-858)."""

    MIGRATING = bytes(16)
    UNASSIGNED = (1).to_bytes(16, "big")
    LOST = (2).to_bytes(16, "big")

    @staticmethod
    def is_reserved(directory_id: bytes) -> bool:
        """Whether the id is one of the first hundred, which Kafka reserves."""
        return int.from_bytes(directory_id, "big") < 100


class RecoveryState(IntEnum):
    """Whether a leader that was elected uncleanly has recovered its log."""

    RECOVERED = 0
    RECOVERING = 1


@dataclass(slots=True, frozen=True)
class PartitionRegistration:
    """The replicas of a partition, its ISR and its leader."""

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
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    def directory_of(self, broker_id: int) -> bytes:
        """Returns the log directory of one replica; UNASSIGNED until its broker reports it."""
        for replica, directory in zip(self.replicas, self.directories, strict=False):
            if replica == broker_id:
                return directory
        return DirectoryId.UNASSIGNED


@dataclass(slots=True, frozen=True)
class TopicImage:
    """A topic and its partitions.

    The image that holds this value changes `partitions` in place; nothing else may.
    """

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionRegistration] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class ListenerEndpoint:
    """A listener of a broker or controller."""

    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(slots=True, frozen=True)
class FeatureLevelRange:
    """The levels of one feature that a node supports."""

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
        """Whether it may lead and be in the ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory_id: bytes) -> bool:
        """Whether replicas in that directory are available.

        A broker without directories registered before there were directory ids. A reserved id
        other than LOST only means that the broker has not reported the directory yet.
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


def endpoint_of(
    node: BrokerRegistration | ControllerRegistration, listener: str
) -> ListenerEndpoint | None:
    """Returns the endpoint of a node with that listener name; None if it has none."""
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
    """What is stored of a user's password for one SCRAM mechanism."""

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
"""(type, name) pairs sorted by type; the name None is the default entity."""
