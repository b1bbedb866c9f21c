"""The partitions of one broker, as leader or follower, and their place in its log directories.

Begin with `partition.py`: it names the hot path. `Partitions` is Kafka's ReplicaManager.
"""

from barnabas.replication.alter_partition_manager import SendToController
from barnabas.replication.partition import NO_EPOCH, LogReadResult, Partition
from barnabas.replication.partition_folders import LogDirReplica, list_replicas
from barnabas.replication.partitions import Partitions
from barnabas.replication.ports import DelayedOperations
from barnabas.replication.topic_config import TopicConfig, resolve_topic_config

__all__ = [
    "NO_EPOCH",
    "DelayedOperations",
    "LogDirReplica",
    "LogReadResult",
    "Partition",
    "Partitions",
    "SendToController",
    "TopicConfig",
    "list_replicas",
    "resolve_topic_config",
]
