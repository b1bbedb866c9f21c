"""Builds a running process out of the other packages, by its `process.roles`."""

from barnabas.node.errors import NodeError
from barnabas.node.node import Node

__all__ = ["Node", "NodeError"]
