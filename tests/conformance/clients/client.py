"""The operations of a client library that the scenarios use.

Each library has an adapter in this package. An adapter adds nothing to its library: it opens a
producer, a consumer or an admin client, does one operation, and closes it. Consumers are assigned
their partition; group_client.py has consumers that join groups and commit.
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


class ErrorCode(IntEnum):
    """The error codes that the scenarios expect."""

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


class ConfigSource(IntEnum):
    """The source of the value of a setting."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class BrokerError(Exception):
    """The broker responded with an error.

    `code` is the error code, or None if the library does not know that error.
    """

    def __init__(self, code: int | None, message: str = "") -> None:
        super().__init__(f"error {code} {message}")
        self.code = code


@contextmanager
def raises_error(code: ErrorCode) -> Iterator[None]:
    """Expects the block to fail with this error of the broker."""
    with pytest.raises(BrokerError) as exception:
        yield
    assert exception.value.code in (code, None)


@dataclass(slots=True, frozen=True)
class SentRecord:
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(slots=True, frozen=True)
class ReceivedRecord:
    offset: int
    timestamp_ms: int
    is_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


@dataclass(slots=True, frozen=True)
class ProducerOptions:
    """The producer settings that a scenario varies."""

    acks: int = -1
    compression: str = "none"
    idempotent: bool = False
    max_request_bytes: int = 1_048_576
    linger_ms: int = 5


DEFAULT = ProducerOptions()


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
    """A client library that is connected to one broker."""

    compressions: ClassVar[Sequence[str]] = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def close(self) -> None: ...

    # -- records

    @abstractmethod
    def produce(
        self, topic: str, records: Sequence[SentRecord], options: ProducerOptions = DEFAULT
    ) -> list[int]:
        """Sends all records with one producer and returns their offsets (-1 if acks is 0)."""

    def fetch(self, topic: str, offset: int, count: int) -> list[ReceivedRecord]:
        """Returns `count` records of partition 0 from an offset, or from EARLIEST."""
        return self.fetch_all(topic, {0: offset}, count)[0]

    @abstractmethod
    def fetch_all(
        self,
        topic: str,
        offsets: Mapping[int, int],
        count: int,
        *,
        max_partition_bytes: int = 16_777_216,
    ) -> dict[int, list[ReceivedRecord]]:
        """Returns `count` records of several partitions from the given offsets."""

    @abstractmethod
    def long_poll(self, topic: str, *, max_wait_ms: int) -> Future[ReceivedRecord]:
        """Waits for the next record of partition 0 in another thread."""

    @abstractmethod
    def offset_for_time(self, topic: str, timestamp_ms: int, *, partition: int = 0) -> int | None:
        """Returns the offset of the first record at or after the time, or None."""

    @abstractmethod
    def watermarks(
        self, topic: str, *, partition: int = 0, reads_committed: bool = False
    ) -> tuple[int, int]:
        """Returns the log start offset and the high watermark or last stable offset."""

    # -- topics

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a topic and waits until it can be used.

        Kafka responds when its controller has decided; its broker applies it a moment later.
        """
        self.send_create_topics(topic, partitions, replication_factor, configs or {})
        wait_until(lambda: self._has_leaders(topic), f"topic {topic} has leaders", poll_s=0.01)

    @abstractmethod
    def send_create_topics(
        self,
        topic: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        """Sends CreateTopics and does not wait until the topic can be used."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...

    @abstractmethod
    def create_partitions(self, topic: str, total: int) -> None: ...

    @abstractmethod
    def topics(self) -> set[str]: ...

    @abstractmethod
    def describe_topic(self, topic: str) -> list[Partition]:
        """Returns the partitions by index."""

    @abstractmethod
    def delete_records(self, topic: str, before_offset: int, *, partition: int = 0) -> int:
        """Deletes the records before the offset (-1: all); returns the new log start offset."""

    # -- settings and the cluster

    @abstractmethod
    def topic_configs(self, topic: str) -> dict[str, Setting]: ...

    @abstractmethod
    def broker_configs(self, node: int) -> dict[str, Setting]: ...

    @abstractmethod
    def describe_cluster(self) -> Cluster: ...

    def _has_leaders(self, topic: str) -> bool:
        try:
            return all(partition.leader >= 0 for partition in self.describe_topic(topic))
        except BrokerError as exception:
            if exception.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return False


class AlterConfigsClient(Client):
    """A library with AlterConfigs."""

    @abstractmethod
    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Sends AlterConfigs, which resets all other settings to their defaults."""


class IncrementalAlterConfigsClient(Client):
    """A library with IncrementalAlterConfigs."""

    @abstractmethod
    def change_topic_config(self, topic: str, name: str, operation: str, value: str | None) -> None:
        """The operation is SET, DELETE, APPEND or SUBTRACT."""


class ListOffsetsClient(Client):
    """A library whose admin client lists offsets."""

    @abstractmethod
    def list_offset(self, topic: str, spec: int, *, partition: int = 0) -> int:
        """Returns the offset for a time in ms, or EARLIEST, LATEST, MAX_TIMESTAMP; -1 for none."""


class LogDirsClient(Client):
    """A library with DescribeLogDirs."""

    @abstractmethod
    def log_dirs(self, topic: str) -> dict[str, dict[int, int]]:
        """Returns the size in bytes of each partition of the topic, by log directory."""
