"""Membership by the classic protocol: members join, one of them assigns, all sync."""

from barnabas.client.consumer.group.classic.member import ClassicMember

__all__ = ["ClassicMember"]
