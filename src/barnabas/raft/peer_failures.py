"""The last failure of each controller that this node sent a request to, for the operator."""

import logging
from typing import Any

from barnabas.raft.addresses import ControllerAddress
from barnabas.wire.errors import ErrorCode

_logger = logging.getLogger(__name__)


class PeerFailures:
    """Why the last request to an address failed; addresses that responded are not listed."""

    __slots__ = ("_of_another_cluster", "by_address")

    def __init__(self) -> None:
        self.by_address: dict[ControllerAddress, str] = {}
        self._of_another_cluster: set[ControllerAddress] = set()

    @property
    def are_of_another_cluster(self) -> bool:
        """Whether all controllers that failed belong to another cluster."""
        return bool(self._of_another_cluster) and self._of_another_cluster == self.by_address.keys()

    def on_response(self, address: ControllerAddress) -> None:
        self.by_address.pop(address, None)
        self._of_another_cluster.discard(address)

    def on_failure(self, address: ControllerAddress, outcome: Any) -> None:
        """Records an OSError or an error response, and logs it if it differs from before."""
        is_of_another_cluster = (
            getattr(outcome, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID
        )
        (
            self._of_another_cluster.add
            if is_of_another_cluster
            else self._of_another_cluster.discard
        )(address)
        reason = _reason(address, outcome)
        if self.by_address.get(address) != reason:
            self.by_address[address] = reason
            _logger.info("The controller at %s:%d: %s", *address, reason)


def _reason(address: ControllerAddress, outcome: Any) -> str:
    if isinstance(outcome, OSError):
        return (outcome.strerror or str(outcome)).removeprefix(f"{address.host}:{address.port}: ")
    code = ErrorCode.of(outcome.error_code)
    if code is ErrorCode.INCONSISTENT_CLUSTER_ID:
        return "it belongs to another cluster"
    return f"it responded with {code.name}"
