"""What came of asking other members of the quorum: for the operator, where nothing good did."""

import logging
from typing import Any

from barnabas.raft.exchange import Address
from barnabas.wire.errors import ErrorCode

_logger = logging.getLogger(__name__)


class Contacts:
    """Why each address gave no good answer when it was last asked; nothing where it did."""

    __slots__ = ("_strangers", "failures")

    def __init__(self) -> None:
        self.failures: dict[Address, str] = {}
        self._strangers: set[Address] = set()

    @property
    def are_strangers(self) -> bool:
        """Whether whoever was asked belongs to another cluster."""
        return bool(self._strangers) and self._strangers == self.failures.keys()

    def answered(self, address: Address) -> None:
        self.failures.pop(address, None)
        self._strangers.discard(address)

    def failed(self, address: Address, answer: Any) -> None:
        """No answer, which is an OSError, or one that refuses; told once as long as it lasts."""
        is_stranger = getattr(answer, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID
        (self._strangers.add if is_stranger else self._strangers.discard)(address)
        reason = _reason(address, answer)
        if self.failures.get(address) != reason:
            self.failures[address] = reason
            _logger.info("The controller at %s:%d: %s", *address, reason)


def _reason(address: Address, answer: Any) -> str:
    if isinstance(answer, OSError):
        return (answer.strerror or str(answer)).removeprefix(f"{address.host}:{address.port}: ")
    code = ErrorCode.of(answer.error_code)
    if code is ErrorCode.INCONSISTENT_CLUSTER_ID:
        return "it belongs to another cluster"
    return f"it refused with {code.name}"
