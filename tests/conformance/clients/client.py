"""What the scenarios ask of a client library, in words that all of them can answer.

Each library has an adapter beside this file. An adapter adds nothing to what its library does:
it opens a producer, a consumer or an admin client, does the one thing, and closes it. Consumers
are assigned their partition; group_client.py has those that join groups and commit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import pytest
from tests.wait import wait_until

DEADLINE_S = 30
EARLIEST = -2
LATEST = -1
MAX_TIMESTAMP = -3


class Code(IntEnum):
    """The protocol's errors that the scenarios expect."""

    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    INVALID_TOPIC_EXCEPTION = 17
    ILLEGAL_GENERATION = 22
    UNKNOWN_MEMBER_ID = 25
    REBALANCE_IN_PROGRESS = 27
    INVALID_TIMESTAMP = 32
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_CONFIG = 40
    POLICY_VIOLATION = 44
    INVALID_TRANSACTION_TIMEOUT = 50
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    TRANSACTIONAL_ID_NOT_FOUND = 105
    UNRELEASED_INSTANCE_ID = 111
    INVALID_REGULAR_EXPRESSION = 128


class Source(IntEnum):
    """Where the value of a setting comes from."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class BrokerError(Exception):
    """The broker answered with an error.

    `code` is the protocol's number for it; None where the library does not know that error.
    """

    def __init__(self, code: int | None, message: str = "") -> None:
        super().__init__(f"error {code} {message}")
        self.code = code


@contextmanager
def refused_with(code: Code) -> Iterator[None]:
    """The block must be refused by the broker, with just this error."""
    with pytest.raises(BrokerError) as refused:
        yield
    assert refused.value.code in (code, None)


@dataclass(slots=True, frozen=True)
class Sent:
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(slots=True, frozen=True)
class Received:
    offset: int
    timestamp_ms: int
    is_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


@dataclass(slots=True, frozen=True)
class Producing:
    """The producer settings that a scenario varies."""

    acks: int = -1
    compression: str = "none"
    idempotent: bool = False
    max_request_bytes: int = 1_048_576
    linger_ms: int = 5


DEFAULT = Producing()


@dataclass(slots=True, frozen=True)
class Partition:
    index: int
    leader: int
    replicas: list[int]
    in_sync: list[int]


@dataclass(slots=True, frozen=True)
class Setting:
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool


@dataclass(slots=True, frozen=True)
class Cluster:
    cluster_id: str
    controller: int
    brokers: dict[int, str]  # node id to host:port


class Client(ABC):
    """One client library talking to one broker."""

    compressions: ClassVar[Sequence[str]] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def close(self) -> None: ...

    # -- records

    @abstractmethod
    def produce(
        self, topic: str, records: Sequence[Sent], producing: Producing = DEFAULT
    ) -> list[int]:
        """Send all with one producer and wait for all; their offsets (-1 where acks is 0)."""

    def fetch(self, topic: str, offset: int, count: int) -> list[Received]:
        """The next `count` records of partition 0 from an offset, or from EARLIEST, on."""
        return self.fetch_all(topic, {0: offset}, count)[0]

    @abstractmethod
    def fetch_all(
        self,
        topic: str,
        offsets: Mapping[int, int],
        count: int,
        *,
        max_partition_bytes: int = 16_777_216,
    ) -> dict[int, list[Received]]:
        """The next `count` records of several partitions, each from its offset on."""

    @abstractmethod
    def long_poll(self, topic: str, *, max_wait_ms: int) -> Future[Received]:
        """Wait at the end of partition 0 in a thread of its own; the result is the next record."""

    @abstractmethod
    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        """The offset of the first record at or after the time; None when there is none."""

    @abstractmethod
    def ends(
        self, topic: str, *, partition: int = 0, reads_committed: bool = False
    ) -> tuple[int, int]:
        """The first offset and the one after the last; of what is committed, or of all."""

    # -- topics

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until it can be used.

        Kafka answers when its controller has decided; its broker may learn of it a moment later.
        """
        self.ask_for_topic(topic, partitions, replication_factor, configs or {})
        wait_until(lambda: self._is_known(topic), f"topic {topic} is known", poll_s=0.01)

    @abstractmethod
    def ask_for_topic(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        """CreateTopics, no more."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...

    @abstractmethod
    def create_partitions(self, topic: str, total: int) -> None: ...

    @abstractmethod
    def topics(self) -> set[str]: ...

    @abstractmethod
    def describe_topic(self, topic: str) -> list[Partition]:
        """Its partitions by index."""

    @abstractmethod
    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        """Delete what lies before the offset (-1: everything); the new first offset."""

    # -- settings and the cluster

    @abstractmethod
    def topic_configs(self, topic: str) -> dict[str, Setting]: ...

    @abstractmethod
    def broker_configs(self, node: int) -> dict[str, Setting]: ...

    @abstractmethod
    def describe_cluster(self) -> Cluster: ...

    def _is_known(self, topic: str) -> bool:
        try:
            return all(partition.leader >= 0 for partition in self.describe_topic(topic))
        except BrokerError as refused:
            if refused.code != Code.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return False


class ReplacesConfigs(Client):
    """A library that knows AlterConfigs and leaves it as it is."""

    @abstractmethod
    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """AlterConfigs: what is not named goes back to its default."""


class ChangesConfigs(Client):
    """A library that knows IncrementalAlterConfigs."""

    @abstractmethod
    def change_topic_config(self, topic: str, name: str, operation: str, value: str | None) -> None:
        """The operation is SET, DELETE, APPEND or SUBTRACT."""


class ListsOffsets(Client):
    """A library whose admin client lists offsets."""

    @abstractmethod
    def list_offset(self, topic: str, spec: int, *, partition: int = 0) -> int:
        """By a time in ms, or EARLIEST, LATEST, MAX_TIMESTAMP; -1 when there is none."""


class DescribesLogDirs(Client):
    """A library that knows DescribeLogDirs."""

    @abstractmethod
    def log_dirs(self, topic: str) -> dict[str, dict[int, int]]:
        """By log directory, the size in bytes of each of the topic's partitions."""
