"""The cluster as a client knows it: brokers, topics, coordinators, and ways to ask them."""

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator
from barnabas.client.cluster.failures import told_by_network
from barnabas.client.cluster.metadata import BrokerInfo, Metadata, PartitionInfo, TopicInfo
from barnabas.client.cluster.patience import Backoff, Deadline

__all__ = [
    "Backoff",
    "BrokerInfo",
    "Cluster",
    "Coordinator",
    "Deadline",
    "Metadata",
    "PartitionInfo",
    "TopicInfo",
    "told_by_network",
]
