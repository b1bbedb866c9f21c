"""The clients for asyncio: the same methods as coroutines, and `async for` over a consumer."""

from typing import TYPE_CHECKING

from barnabas.lazy import lazy_getattr

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient as AdminClient
    from barnabas.client.consumer import AioConsumer as AIOConsumer
    from barnabas.client.consumer import AioConsumer as Consumer
    from barnabas.client.producer import AioProducer as AIOProducer
    from barnabas.client.producer import AioProducer as Producer
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "barnabas.client.admin": ("AioAdminClient as AdminClient",),
            "barnabas.client.consumer": ("AioConsumer as AIOConsumer", "AioConsumer as Consumer"),
            "barnabas.client.producer": ("AioProducer as AIOProducer", "AioProducer as Producer"),
        },
    )

__all__ = ["AIOConsumer", "AIOProducer", "AdminClient", "Consumer", "Producer"]
