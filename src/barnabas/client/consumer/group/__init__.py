"""Membership in a consumer group, by both protocols, and the committed offsets of the group."""

from barnabas.client.consumer.group.consumer_coordinator import ConsumerCoordinator
from barnabas.client.consumer.group.membership import RebalanceListener

__all__ = ["ConsumerCoordinator", "RebalanceListener"]
