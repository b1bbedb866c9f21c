"""Writes statuses in the background: the latest of each key, in the order of the changes."""

import asyncio
import logging

from barnabas.client.errors import KafkaException, error_in
from barnabas.connect.storage.status_topic import StatusTopic
from barnabas.connect.storage.topic_log import KeyAndValue

_log = logging.getLogger(__name__)
_RETRY_PAUSE_S = 1.0
_FINAL_TIMEOUT_S = 5.0


class StatusWriter:
    """Lives on one event loop. Never fails: what cannot be written is tried again."""

    def __init__(self, topic: StatusTopic) -> None:
        self._topic = topic
        self._pending: dict[bytes, bytes | None] = {}
        self._has_pending = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Waits for what is not written yet, but not without end."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(_FINAL_TIMEOUT_S):
                await self.flush()
        except TimeoutError:
            _log.warning("%d statuses are not written", len(self._pending))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def write(self, *records: KeyAndValue) -> None:
        for key, value in records:
            self._pending.pop(key, None)
            self._pending[key] = value
        if records:
            self._is_idle.clear()
            self._has_pending.set()

    async def flush(self) -> None:
        """Returns when everything is written."""
        await self._is_idle.wait()

    async def _run(self) -> None:
        while True:
            await self._has_pending.wait()
            self._has_pending.clear()
            batch, self._pending = self._pending, {}
            try:
                await self._topic.append(*batch.items())
            except (KafkaException, TimeoutError) as error:
                text = error_in(error).str() if isinstance(error, KafkaException) else "timed out"
                _log.warning("statuses cannot be written, trying again: %s", text)
                self._pending = {**batch, **self._pending}
                self._has_pending.set()
                await asyncio.sleep(_RETRY_PAUSE_S)
            if not self._pending:
                self._is_idle.set()
