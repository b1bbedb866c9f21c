"""The control plane: decides on requests as metadata records, on the active controller."""

from barnabas.controller.quorum_controller import QuorumController

__all__ = ["QuorumController"]
