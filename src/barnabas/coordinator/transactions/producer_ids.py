"""The producer ids this broker gives out, from blocks that the controller gives to it."""

from collections import deque
from typing import Final

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.transactions.ports import ProducerIdBlocks
from barnabas.wire.errors import ErrorCode, KafkaError

PREFETCH_BELOW: Final = 0.1
"""The share of a block that is left when the next one is asked for, so that nobody waits."""


class ProducerIdManager:
    """Hands out ids one by one. No id is given twice: a block left unused is lost, not reused."""

    __slots__ = ("_blocks", "_is_asking", "_left", "_prefetch_at", "_spare", "_waiting")

    def __init__(self, blocks: ProducerIdBlocks) -> None:
        self._blocks = blocks
        self._left = range(0)
        self._spare = range(0)
        self._prefetch_at = 0
        self._is_asking = False
        self._waiting: deque[PendingResponse[int]] = deque()

    def generate(self) -> PendingResponse[int]:
        """The next id: at once, unless both blocks are used up."""
        if not self._left and self._spare:
            self._left, self._spare = self._spare, range(0)
            self._prefetch_at = int(len(self._left) * PREFETCH_BELOW)
        if not self._left:
            waiting: PendingResponse[int] = PendingResponse()
            self._waiting.append(waiting)
            self._ask()
            return waiting
        producer_id, self._left = self._left[0], self._left[1:]
        if len(self._left) <= self._prefetch_at and not self._spare:
            self._ask()
        return PendingResponse.completed(producer_id)

    def _ask(self) -> None:
        if not self._is_asking:
            self._is_asking = True
            self._blocks.allocate().when_done(self._allocated)

    def _allocated(self, block: PendingResponse[range]) -> None:
        self._is_asking = False
        if block.error is not None or not block.result():
            self._refuse(block.error)
            return
        self._spare = block.result()
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            self._give(each)

    def _give(self, waiting: PendingResponse[int]) -> None:
        self.generate().when_done(lambda taken: waiting.complete_with(taken.result))

    def _refuse(self, error: Exception | None) -> None:
        """Who waits is told; a prefetch that nobody waits for may fail unheard."""
        refusal = KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            f"The controller gave no producer ids: {error or 'an empty block'}. Try again.",
        )
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.fail(refusal)
