"""A client's view of the cluster: brokers, topics, coordinators, and requests to them."""

from barnabas.client.backoff import Backoff, Deadline
from barnabas.client.cluster.cluster import ClusterClient
from barnabas.client.cluster.coordinators import CoordinatorType
from barnabas.client.cluster.metadata import BrokerInfo, MetadataSnapshot, PartitionInfo, TopicInfo
from barnabas.client.cluster.nodes import network_error

__all__ = [
    "Backoff",
    "BrokerInfo",
    "ClusterClient",
    "CoordinatorType",
    "Deadline",
    "MetadataSnapshot",
    "PartitionInfo",
    "TopicInfo",
    "network_error",
]
