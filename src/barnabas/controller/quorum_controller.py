"""The controller of a node: it decides on requests while the node leads the quorum.

A request is decided at once on the speculative image, to which all earlier decisions are applied,
and its records are appended at once. The quorum commits what was appended meanwhile together; the
response is sent when the records are published in the committed image of this node.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.config.settings import BrokerSettings
from barnabas.controller.active_controller import ActiveController, ControllerLog, load_decider
from barnabas.controller.context import NODE, Requester
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

MAX_WAITING_REQUESTS: Final = 10_000
"""The limit on requests that wait for a commit; clients have to retry further ones."""

MIN_TIMEOUT_MS: Final = 5_000
"""The minimum timeout: clients that do not wait for propagation send a timeout of 0."""

_logger = logging.getLogger(__name__)


class QuorumController:
    """Active from `activate` to `resign`, on one event loop."""

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
        """`clock` is the wall clock, for record timestamps; timeouts use `monotonic`."""
        self._quorum = quorum
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._monotonic = monotonic
        self._image = image
        self._random = random
        self._active: ActiveController | None = None
        self._published_offset = -1
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def is_active(self) -> bool:
        return self._active is not None

    @property
    def epoch(self) -> int:
        """The epoch in which this node is the active controller; -1 while it is not."""
        return self._active.epoch if self._active is not None else -1

    def activate(
        self, epoch: int, bootstrap: Sequence[bytes] = (), *, in_transaction: bool = False
    ) -> None:
        """Becomes active. The committed image must have everything before `epoch`.

        `bootstrap` are the encoded records of formatting, for the first controller of a new
        cluster; `in_transaction` says whether a metadata transaction was left open.
        """
        self.resign()
        committed = self._image()
        self._published_offset = max(self._published_offset, committed.offset)
        active = ActiveController(
            epoch,
            self._quorum,
            committed.copy(),
            self._settings,
            cluster_id=self._cluster_id,
            clock=self._clock,
            monotonic=self._monotonic,
            random=self._random,
        )
        self._active = active
        _logger.info("Active controller in epoch %d, from offset %d", epoch, committed.offset)
        try:
            active.activate(bootstrap, in_transaction=in_transaction)
        except KafkaError as error:
            self._fail(active, error)

    def resign(self) -> None:
        """Becomes inactive. Waiting requests fail with NOT_CONTROLLER; they may still commit."""
        if self._active is None:
            return
        _logger.info("No longer the active controller of epoch %d", self._active.epoch)
        self._active = None
        for _, published in self._waiting:
            if not published.done():
                published.set_exception(_not_controller())
        self._waiting.clear()

    async def handle(
        self, request: Message, *, requester: Requester = NODE, timeout_ms: int = 0
    ) -> Any:
        """Decides on a request and returns its response once its records are published.

        Raises KafkaError if the request fails as a whole.
        """
        decider = load_decider(request.API_KEY)
        active = self._require_active()
        try:
            response = active.decide(decider, request, requester)
        finally:
            self._resign_if_failed(active)
        # A decision without records may depend on records that are not committed yet.
        await self._wait_published(active, timeout_ms)
        return response

    def on_published(self, offset: int) -> None:
        """Completes the requests whose records are published: those up to `offset`."""
        self._published_offset = offset
        if self._active is not None:
            self._active.on_published(offset)
        while self._waiting and self._waiting[0][0] <= offset:
            _, published = self._waiting.popleft()
            if not published.done():
                published.set_result(None)

    def run_periodic_tasks(self) -> None:
        """Ends sessions, balances leaders, and writes a no-op record to an idle log.

        It must be called often; its cost depends on what is due.
        """
        self._run(ActiveController.run_periodic_tasks)

    def fence_broker(self, broker_id: int) -> None:
        """Fences a broker whose process is known to be gone, before its session ends."""
        self._run(lambda active: active.fence_broker(broker_id))

    def _run(self, action: Callable[[ActiveController], None]) -> None:
        active = self._active
        if active is None:
            return
        try:
            action(active)
        except KafkaError as error:
            self._fail(active, error)

    def _resign_if_failed(self, active: ActiveController) -> None:
        if active.has_failed and self._active is active:
            self.resign()

    def _fail(self, active: ActiveController, error: KafkaError) -> None:
        _logger.warning("Resigning as the active controller of epoch %d: %s", active.epoch, error)
        if self._active is active:
            self.resign()

    def _require_active(self) -> ActiveController:
        if self._active is None:
            raise _not_controller()
        if len(self._waiting) >= MAX_WAITING_REQUESTS:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{MAX_WAITING_REQUESTS} changes are waiting for the quorum; retry later.",
            )
        return self._active

    async def _wait_published(self, active: ActiveController, timeout_ms: int) -> None:
        """Waits until everything that was decided so far in this epoch is published."""
        if active.last_offset <= self._published_offset:
            return
        if self._active is not active:
            raise _not_controller()
        loop = asyncio.get_running_loop()
        published: asyncio.Future[None] = loop.create_future()
        self._waiting.append((active.last_offset, published))
        timeout_s = max(timeout_ms, MIN_TIMEOUT_MS) / 1000
        timer = loop.call_later(timeout_s, _time_out, published)
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
