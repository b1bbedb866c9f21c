"""The controller of a node: decides while the node leads the quorum, and stands by otherwise.

A request is decided at once on the image *ahead*, in which everything decided before has
happened, and its records are appended at once. The quorum commits whatever was appended
meanwhile together; the answer leaves when the node has published what was committed.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.config.settings import BrokerSettings
from barnabas.controller.active_controller import ActiveController, ControllerLog
from barnabas.controller.apis import load_decider
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

MAX_WAITING: Final = 10_000
"""Requests that may wait for the quorum at once; more are told to come back."""

LEAST_WAIT_MS: Final = 5_000
"""Clients that do not wait for propagation send a timeout of 0, and still want their answer."""

_logger = logging.getLogger(__name__)


class QuorumController:
    """Active from `activate` to `resign`. Lives on one event loop."""

    def __init__(
        self,
        quorum: ControllerLog,
        settings: BrokerSettings,
        *,
        cluster_id: str,
        clock: Callable[[], int],
        monotonic: Callable[[], int],
        image: Callable[[], MetadataImage],
        random: random.Random,
    ) -> None:
        """`clock` is the wall clock, for what is written; all waiting goes by `monotonic`."""
        self._quorum = quorum
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._monotonic = monotonic
        self._image = image
        self._random = random
        self._term: ActiveController | None = None
        self._published = -1
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def is_active(self) -> bool:
        return self._term is not None

    @property
    def epoch(self) -> int:
        """The epoch in which this node is the active controller; -1 while it stands by."""
        return self._term.epoch if self._term is not None else -1

    def activate(
        self, epoch: int, bootstrap: Sequence[bytes] = (), *, in_transaction: bool = False
    ) -> None:
        """Begin to decide, on an image that has everything committed before `epoch`.

        `bootstrap` are the encoded records that formatting left for a new cluster's first
        controller; `in_transaction` says that the one before left a metadata transaction open.
        """
        self.resign()
        committed = self._image()
        self._published = max(self._published, committed.offset)
        term = ActiveController(
            epoch,
            self._quorum,
            committed.copy(),
            self._settings,
            cluster_id=self._cluster_id,
            clock=self._clock,
            monotonic=self._monotonic,
            random=self._random,
        )
        self._term = term
        _logger.info("Active controller in epoch %d, from offset %d", epoch, committed.offset)
        try:
            term.activate(bootstrap, in_transaction=in_transaction)
        except KafkaError as error:
            self._end(term, error)

    def resign(self) -> None:
        """Decide no more. Whoever waits is sent to the next controller, which may have it."""
        if self._term is None:
            return
        _logger.info("No longer the active controller of epoch %d", self._term.epoch)
        self._term = None
        for _, published in self._waiting:
            if not published.done():
                published.set_exception(_not_controller())
        self._waiting.clear()

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """Decides on a request and returns its response once its records are published.

        Raises KafkaError if the request fails as a whole.
        """
        api = load_decider(request.API_KEY)
        term = self._require_active()
        try:
            response = term.decide(api, request)
        finally:
            self._leave_a_term_that_is_over(term)
        # A decision without records may depend on records that are not committed yet.
        await self._wait_for(term, timeout_ms)
        return response

    def on_published(self, offset: int) -> None:
        """The committed image was published up to and including `offset`: answers leave."""
        self._published = offset
        while self._waiting and self._waiting[0][0] <= offset:
            _, published = self._waiting.popleft()
            if not published.done():
                published.set_result(None)

    def run_periodic_tasks(self) -> None:
        """What time brings: sessions end, leaders are balanced, a silent log gets a sign of life.

        To be called often; it costs no more than there is to do.
        """
        self._act(ActiveController.run_periodic_tasks)

    def fence_broker(self, broker_id: int) -> None:
        """Somebody saw that a broker's process is gone: do not wait for its session to end."""
        self._act(lambda term: term.fence_broker(broker_id))

    def _act(self, action: Callable[[ActiveController], None]) -> None:
        term = self._term
        if term is None:
            return
        try:
            action(term)
        except KafkaError as error:
            self._end(term, error)

    def _leave_a_term_that_is_over(self, term: ActiveController) -> None:
        if term.has_failed and self._term is term:
            self.resign()

    def _end(self, term: ActiveController, error: KafkaError) -> None:
        _logger.warning("The controller of epoch %d cannot go on: %s", term.epoch, error)
        if self._term is term:
            self.resign()

    def _require_active(self) -> ActiveController:
        if self._term is None:
            raise _not_controller()
        if len(self._waiting) >= MAX_WAITING:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{MAX_WAITING} changes are waiting for the quorum; try again.",
            )
        return self._term

    async def _wait_for(self, term: ActiveController, timeout_ms: int) -> None:
        """Until everything decided so far in this term is published."""
        if term.last_offset <= self._published:
            return
        if self._term is not term:
            raise _not_controller()
        loop = asyncio.get_running_loop()
        published: asyncio.Future[None] = loop.create_future()
        self._waiting.append((term.last_offset, published))
        wait_s = max(timeout_ms, LEAST_WAIT_MS) / 1000
        timer = loop.call_later(wait_s, _time_out, published)
        try:
            await published
        finally:
            timer.cancel()


def _not_controller() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the active controller.")


def _time_out(published: asyncio.Future[None]) -> None:
    if not published.done():
        published.set_exception(
            KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "The change was not committed in time; it may still be.",
            )
        )
