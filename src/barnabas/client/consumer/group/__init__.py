"""Membership in a consumer group, in both protocols, and the offsets that groups commit."""

from barnabas.client.consumer.group.consumer_coordinator import ConsumerCoordinator
from barnabas.client.consumer.group.member import RebalanceListener

__all__ = ["ConsumerCoordinator", "RebalanceListener"]
