"""Why a node cannot start or continue, in words for its operator."""

import asyncio


class NodeError(Exception):
    """The message says what is wrong and what to do; no traceback is needed."""


class FatalErrors:
    """Errors after which the node must stop. The first one reported is the reason."""

    def __init__(self) -> None:
        self.reason = ""
        self._happened = asyncio.Event()

    def report(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._happened.set()

    async def wait(self) -> None:
        await self._happened.wait()
