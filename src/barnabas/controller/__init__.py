"""The control plane: decides on a command, and answers with metadata records."""

from barnabas.controller.controller import Controller

__all__ = ["Controller"]
