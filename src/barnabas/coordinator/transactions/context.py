"""What deciding about transactions needs besides the request and the state."""

from dataclasses import dataclass

from barnabas.metadata.features import TRANSACTION_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.wire.records.batch import NO_PRODUCER_ID


@dataclass(slots=True, frozen=True)
class TransactionContext:
    now_ms: int
    image: MetadataImage
    api_version: int = 0
    """Of the request; 0 where there is none."""
    new_producer_id: int = NO_PRODUCER_ID
    """A producer id that nobody has, if the decision may need one."""

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version` that the cluster has finalized."""
        return self.image.features.get(TRANSACTION_VERSION, 0)
