"""Why a node cannot start or continue, in words for its operator."""

import asyncio


class NodeError(Exception):
    """The message says what is wrong and what to do; no traceback is needed."""


class PortInUse(NodeError):  # noqa: N818 - the domain's word for it
    """Another process listens on a port of this node. `setting` is the one that has the port."""

    def __init__(self, host: str, port: int, setting: str) -> None:
        super().__init__(
            f"Port {port} is in use: stop what listens there, or choose another port in {setting}."
        )
        self.host = host
        self.port = port
        self.setting = setting


class LogDirInUse(NodeError):  # noqa: N818 - the domain's word for it
    """Another process has a log directory of this node open."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Another broker uses {path}: stop it, or choose another directory.")
        self.path = path


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
