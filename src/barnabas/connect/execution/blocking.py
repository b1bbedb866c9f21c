"""Runs blocking calls, such as those of connectors, in threads."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MAX_THREADS = 64
CANCEL_TIMEOUT_S = 30.0
"""How long a cancelled call is waited for: it cannot be interrupted."""


class BlockingCalls:
    """A pool of threads. Idle connectors need one for some microseconds at a time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="barnabas-connect")

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result. If it is cancelled, the call has normally ended all the same."""
        call = functools.partial(function, *args, **kwargs)
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future], timeout=CANCEL_TIMEOUT_S)
            if future.done() and not future.cancelled():
                future.exception()  # which nobody else retrieves
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
