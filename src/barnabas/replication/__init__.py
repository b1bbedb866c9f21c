"""The data plane: partitions as leader or follower, on the disks of one broker."""

from barnabas.replication.log_dir_replicas import Holding, holdings_of
from barnabas.replication.alter_partition_manager import AskController
from barnabas.replication.leading import FetchedPartition
from barnabas.replication.partition import Partition
from barnabas.replication.partitions import Partitions
from barnabas.replication.ports import Waiting
from barnabas.replication.replica import NO_EPOCH
from barnabas.replication.topic_config import TopicRules, rules_of

__all__ = [
    "NO_EPOCH",
    "AskController",
    "FetchedPartition",
    "Holding",
    "Partition",
    "Partitions",
    "TopicRules",
    "Waiting",
    "holdings_of",
    "rules_of",
]
