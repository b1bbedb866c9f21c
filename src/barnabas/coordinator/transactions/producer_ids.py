"""The producer ids of this broker, from blocks that the controller allocates."""

from collections import deque
from typing import Final, Protocol

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode, KafkaError

PREFETCH_BELOW: Final = 0.1
"""The share of a block that is left when the next one is requested, so that no producer waits."""


class ProducerIdBlocks(Protocol):
    """Allocates ranges of producer ids that no other broker has."""

    def allocate(self) -> PendingResponse[range]:
        """Returns the next block. The response fails if none can be allocated now."""


class ProducerIdManager:
    """Generates ids one by one. No id is given twice: an unused rest of a block is lost."""

    __slots__ = (
        "_blocks",
        "_is_requesting",
        "_next_block",
        "_prefetch_at",
        "_remaining",
        "_waiting",
    )

    def __init__(self, blocks: ProducerIdBlocks) -> None:
        self._blocks = blocks
        self._remaining = range(0)
        self._next_block = range(0)
        self._prefetch_at = 0
        self._is_requesting = False
        self._waiting: deque[PendingResponse[int]] = deque()

    def generate(self) -> PendingResponse[int]:
        """Returns the next id: at once, unless both blocks are used up."""
        if not self._remaining and self._next_block:
            self._remaining, self._next_block = self._next_block, range(0)
            self._prefetch_at = int(len(self._remaining) * PREFETCH_BELOW)
        if not self._remaining:
            waiting: PendingResponse[int] = PendingResponse()
            self._waiting.append(waiting)
            self._request_block()
            return waiting
        producer_id, self._remaining = self._remaining[0], self._remaining[1:]
        if len(self._remaining) <= self._prefetch_at and not self._next_block:
            self._request_block()
        return PendingResponse.completed(producer_id)

    def _request_block(self) -> None:
        if not self._is_requesting:
            self._is_requesting = True
            self._blocks.allocate().when_done(self._on_block)

    def _on_block(self, block: PendingResponse[range]) -> None:
        self._is_requesting = False
        waiting, self._waiting = self._waiting, deque()
        if block.error is None and block.result():
            self._next_block = block.result()
            for response in waiting:
                self._complete(response)
            return
        # A prefetch that fails is tried again with the next request.
        error = KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            f"The controller gave no producer ids: {block.error or 'an empty block'}. Try again.",
        )
        for response in waiting:
            response.fail(error)

    def _complete(self, waiting: PendingResponse[int]) -> None:
        self.generate().when_done(lambda producer_id: waiting.complete_with(producer_id.result))
