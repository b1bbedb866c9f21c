"""Producers: records in, batches out, delivery reports back.

A record goes from `Intake.produce` (in the user's thread) to the open batch of its partition in
the `Accumulator`; the `Sender` says which batches go where and what becomes of them; the core
carries them there; the `Outbox` brings the reports back to the user's thread.
"""

from barnabas.client.producer.aio import AioProducer
from barnabas.client.producer.plain import Producer

__all__ = ["AioProducer", "Producer"]
