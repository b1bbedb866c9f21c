"""What came of asking other members of the quorum: for the operator, where nothing good did."""

import logging
from typing import Any

from barnabas.raft.addresses import ControllerAddress
from barnabas.wire.errors import ErrorCode

_logger = logging.getLogger(__name__)


class PeerFailures:
    """Why each address gave no good answer when it was last asked; nothing where it did."""

    __slots__ = ("_strangers", "by_address")

    def __init__(self) -> None:
        self.by_address: dict[ControllerAddress, str] = {}
        self._strangers: set[ControllerAddress] = set()

    @property
    def are_of_another_cluster(self) -> bool:
        """Whether whoever was asked belongs to another cluster."""
        return bool(self._strangers) and self._strangers == self.by_address.keys()

    def on_response(self, address: ControllerAddress) -> None:
        self.by_address.pop(address, None)
        self._strangers.discard(address)

    def on_failure(self, address: ControllerAddress, answer: Any) -> None:
        """No answer, which is an OSError, or one that refuses; told once as long as it lasts."""
        is_stranger = getattr(answer, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID
        (self._strangers.add if is_stranger else self._strangers.discard)(address)
        reason = _reason(address, answer)
        if self.by_address.get(address) != reason:
            self.by_address[address] = reason
            _logger.info("The controller at %s:%d: %s", *address, reason)


def _reason(address: ControllerAddress, answer: Any) -> str:
    if isinstance(answer, OSError):
        return (answer.strerror or str(answer)).removeprefix(f"{address.host}:{address.port}: ")
    code = ErrorCode.of(answer.error_code)
    if code is ErrorCode.INCONSISTENT_CLUSTER_ID:
        return "it belongs to another cluster"
    return f"it refused with {code.name}"
