"""Enums of the admin API, with the numbers of `confluent_kafka`.

They also have the members that the protocol has and that library does not.
"""

from enum import Enum
from typing import TypeVar

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
