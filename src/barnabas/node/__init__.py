"""Builds a running process out of the rooms, by its roles."""

from barnabas.node.errors import NodeError
from barnabas.node.node import Node

__all__ = ["Node", "NodeError"]
