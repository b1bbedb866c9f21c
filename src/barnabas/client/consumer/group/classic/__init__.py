"""Membership by the classic protocol: members join, the leader assigns, all sync."""

from barnabas.client.consumer.group.classic.member import ClassicGroupMembership

__all__ = ["ClassicGroupMembership"]
