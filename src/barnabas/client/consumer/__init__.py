"""The consumer: fetching, positions, membership in a group, and the facades over them."""

from barnabas.client.consumer.aio import AioConsumer
from barnabas.client.consumer.consumer import Consumer

__all__ = ["AioConsumer", "Consumer"]
