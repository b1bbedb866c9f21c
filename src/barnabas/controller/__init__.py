"""The control plane: decides on a command, and answers with metadata records."""

from barnabas.controller.quorum_controller import QuorumController

__all__ = ["QuorumController"]
