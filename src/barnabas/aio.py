"""The clients for asyncio: the same methods as coroutines, and `async for` over a consumer."""

from barnabas.client.admin import AioAdminClient as AdminClient
from barnabas.client.consumer import AioConsumer as Consumer
from barnabas.client.producer import AioProducer as Producer

AIOConsumer = Consumer
AIOProducer = Producer

__all__ = ["AIOConsumer", "AIOProducer", "AdminClient", "Consumer", "Producer"]
