"""Values that several admin calls share, most of them at the top level of `confluent_kafka`.

The enums have its numbers, and the members that the protocol has and that library does not.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

from barnabas.client.values import TopicPartition

E = TypeVar("E", bound=Enum)


def as_enum(value: object, kind: type[E]) -> E:
    """Returns the member of `kind` for a member, a name in any case, or a number."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        try:
            return kind[value.upper()]
        except KeyError:
            names = ", ".join(kind.__members__)
            raise ValueError(f"{value!r} is not a {kind.__name__}: use one of {names}") from None
    if isinstance(value, int):
        return kind(value)
    raise TypeError(f"{value!r} is not a {kind.__name__}")


class _Ordered(Enum):
    """Members that sort by their numbers."""

    def __lt__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        assert isinstance(other, Enum)
        return bool(self.value < other.value)


class ResourceType(_Ordered):
    """The resources of configs and ACLs."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    BROKER = 4
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


class ResourcePatternType(_Ordered):
    """How an ACL matches the names of resources."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Ordered):
    """Operations on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(_Ordered):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ConfigSource(Enum):
    """The source of a config's value."""

    UNKNOWN_CONFIG = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class AlterConfigOpType(Enum):
    """A change of one config; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConsumerGroupState(_Ordered):
    UNKNOWN = 0
    UNKOWN = 0
    PREPARING_REBALANCING = 1
    COMPLETING_REBALANCING = 2
    STABLE = 3
    DEAD = 4
    EMPTY = 5
    ASSIGNING = 6
    RECONCILING = 7


class ConsumerGroupType(_Ordered):
    UNKNOWN = 0
    CONSUMER = 1
    CLASSIC = 2


class IsolationLevel(_Ordered):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ElectionType(_Ordered):
    PREFERRED = 0
    UNCLEAN = 1


class ScramMechanism(_Ordered):
    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


_NO_OPERATIONS = -(2**31)
"""The authorized operations in a response to a request that did not include them."""

_64_BITS = 2**64 - 1


@dataclass(slots=True, frozen=True)
class Node:
    """A broker or a controller, and its address."""

    id: int
    host: str
    port: int
    rack: str | None = None
    id_string: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id_string", str(self.id))

    def __str__(self) -> str:
        return f"({self.id}) {self.host}:{self.port} {f'(Rack - {self.rack})' if self.rack else ''}"


@dataclass(slots=True, eq=False)
class TopicCollection:
    """Topics by their names."""

    topic_names: list[str]


@dataclass(slots=True, eq=False)
class TopicPartitionInfo:
    """A partition with its leader and replicas.

    `elr` and `last_known_elr` are the eligible leader replicas outside of the ISR (KIP-966), None
    if the broker does not report them; `offline` has the replicas whose log directory or broker
    is offline.
    """

    id: int
    leader: Node | None
    replicas: list[Node]
    isr: list[Node]
    elr: list[Node] | None = None
    last_known_elr: list[Node] | None = None
    offline: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ConsumerGroupTopicPartitions:
    """A group with partitions, which may have offsets; None stands for all partitions."""

    group_id: str
    topic_partitions: list[TopicPartition] | None = None


class Uuid:
    """128 bits: the id of a topic or of a directory."""

    __slots__ = ("_least", "_most")

    def __init__(self, most_significant_bits: int, least_significant_bits: int) -> None:
        self._most = most_significant_bits
        self._least = least_significant_bits

    @classmethod
    def from_bytes(cls, sixteen: bytes) -> "Uuid":
        most, least = sixteen[:8], sixteen[8:]
        return cls(int.from_bytes(most, signed=True), int.from_bytes(least, signed=True))

    def get_most_significant_bits(self) -> int:
        return self._most

    def get_least_significant_bits(self) -> int:
        return self._least

    def __bytes__(self) -> bytes:
        return int(self).to_bytes(16)

    def __int__(self) -> int:
        return (self._most & _64_BITS) << 64 | self._least & _64_BITS

    def __eq__(self, other: object) -> bool:
        return int(self) == int(other) if isinstance(other, Uuid) else NotImplemented

    def __hash__(self) -> int:
        return hash(int(self))

    def __str__(self) -> str:
        return base64.b64encode(bytes(self)).rstrip(b"=").decode()

    __repr__ = __str__


class OfTopic(Protocol):
    @property
    def topic(self) -> str: ...


T = TypeVar("T", bound=OfTopic)


def by_topic(partitions: Iterable[T]) -> dict[str, list[T]]:
    """Returns partitions, or their replicas, by topic, as requests list them."""
    topics: dict[str, list[T]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition)
    return topics


def as_operations(
    operations: Iterable[AclOperation | str | int] | None,
) -> list[AclOperation] | None:
    """Returns operations for members, names or numbers; None if there are none."""
    return [as_enum(operation, AclOperation) for operation in operations or ()] or None


def operations_from_bits(bits: int) -> list[AclOperation] | None:
    """Returns the authorized operations in a bit field; None if they were not requested."""
    if bits == _NO_OPERATIONS:
        return None
    return [operation for operation in AclOperation if bits >> operation.value & 1] or None
