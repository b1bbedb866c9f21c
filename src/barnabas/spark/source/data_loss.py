"""The option `failOnDataLoss`: what happens if records were deleted before they were read."""

import logging
from dataclasses import dataclass
from typing import ClassVar

from barnabas.spark.source.connection import SourceError

log = logging.getLogger(__name__)

ADVICE = (
    "Records may have expired before they were read, or the topic was created again. Set"
    " failOnDataLoss to false to continue without them."
)


@dataclass(slots=True, frozen=True)
class DataLossPolicy:
    """Whether to fail, and how long to wait for a partition that makes no progress."""

    fail_on_data_loss: bool
    timeout_ms: int
    timeout_setting: ClassVar[str] = "kafkaConsumer.pollTimeoutMs"

    def on_data_loss(self, reason: str) -> None:
        """Raises SourceError, or logs that the records are skipped."""
        if self.fail_on_data_loss:
            raise SourceError(f"{reason} {ADVICE}")
        log.warning("%s The records are skipped, since failOnDataLoss is false.", reason)
