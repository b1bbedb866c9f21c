"""What becomes of records that are not there any more: `failOnDataLoss`."""

import logging
from dataclasses import dataclass

from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.offsets import OffsetRange

log = logging.getLogger(__name__)

ADVICE = (
    "Records may have aged out before they were read, or the topic was created anew. Set"
    " failOnDataLoss to false to go on without them."
)


@dataclass(slots=True, frozen=True)
class Loss:
    """Whether to fail, and how long what is missing may take to come."""

    fails: bool
    patience_ms: int

    def tell(self, what: str) -> None:
        """SourceError, or a line in the log."""
        if self.fails:
            raise SourceError(f"{what} {ADVICE}")
        log.warning("%s It is passed over, since failOnDataLoss is false.", what)

    def goes_on_at(self, wanted: OffsetRange, offset: int, first: int, end: int) -> int:
        """Where to go on in a range whose `offset` is outside of the log."""
        place = wanted.place
        if offset > end:
            self.tell(f"{place} ends at offset {end}, before {offset}, where reading was to go on.")
            return wanted.end
        lost = min(first, wanted.end)
        self.tell(f"{place} begins at offset {first}: those from {offset} to {lost} are gone.")
        return lost
