"""The consumer: `Consumer` for threads and `AioConsumer` for asyncio, over one core.

`core.py` joins the parts: `fetcher.py` reads ahead, `fetch_buffer.py` holds what was fetched,
`position_updater.py` finds positions, and `group/` has the membership in a group.
"""

from barnabas.client.consumer.aio import AioConsumer
from barnabas.client.consumer.consumer import Consumer

__all__ = ["AioConsumer", "Consumer"]
