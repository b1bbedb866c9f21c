"""What becomes of records that are not there any more: `failOnDataLoss`."""

import logging
from dataclasses import dataclass
from typing import ClassVar

from barnabas.spark.source.connection import SourceError

log = logging.getLogger(__name__)

ADVICE = (
    "Records may have aged out before they were read, or the topic was created anew. Set"
    " failOnDataLoss to false to go on without them."
)


@dataclass(slots=True, frozen=True)
class DataLossPolicy:
    """Whether to fail, and how long a partition may make no progress."""

    fails: bool
    timeout_ms: int
    timeout_setting: ClassVar[str] = "kafkaConsumer.pollTimeoutMs"

    def on_data_loss(self, reason: str) -> None:
        """Raises SourceError, or logs that the records are skipped."""
        if self.fails:
            raise SourceError(f"{reason} {ADVICE}")
        log.warning("%s It is passed over, since failOnDataLoss is false.", reason)
