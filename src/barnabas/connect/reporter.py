"""Where a sink writer reports records that it cannot write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.connect.data.batch import ConnectBatch


class ErrorReporter(Protocol):
    """Takes failed records, as the connector's `errors.*` settings say."""

    @property
    def tolerates_errors(self) -> bool:
        """Whether `errors.tolerance` is `all`."""
        ...

    def report(self, records: ConnectBatch, error: Exception) -> None:
        """Raises the error if the connector does not tolerate it; otherwise logs the records and
        writes their original bytes to the dead letter queue, if it has one."""
        ...
