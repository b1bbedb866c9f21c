"""Membership by the consumer protocol (KIP-848): the coordinator assigns, by heartbeats."""

from barnabas.client.consumer.group.consumer.member import ConsumerGroupMembership

__all__ = ["ConsumerGroupMembership"]
