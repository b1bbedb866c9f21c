"""One instance of the registry: what it knows, where it writes, and who may."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from barnabas.registry.commands import Decision
from barnabas.registry.log import SchemaLog
from barnabas.registry.settings import RegistrySettings
from barnabas.registry.state import State

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Instance:
    """Lives on one loop. Whoever answers requests reads `state`; `write` is how it changes."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self.state = State()
        self._log = SchemaLog(settings, self.state.apply)
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        await self._log.start()

    async def stop(self) -> None:
        await self._log.stop()

    async def write(
        self, decide: Callable[[Request, State], Decision[Answer]], request: Request
    ) -> Answer:
        """Decide with all that was written before in view, and answer when it is written too."""
        async with self._writing:
            if not self._log.is_taken_over:
                await self._log.take_over()
            decision = decide(request, self.state)
            if decision.records:
                await self._log.append(decision.records)
            return decision.answer
