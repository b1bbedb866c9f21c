"""Membership in a consumer group, in both protocols, and the offsets that groups commit."""

from barnabas.client.consumer.group.group import Group
from barnabas.client.consumer.group.ports import Assignee

__all__ = ["Assignee", "Group"]
