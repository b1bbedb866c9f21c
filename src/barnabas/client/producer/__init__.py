"""Producers: records in, batches out, delivery reports back.

`ProducerBase.produce` (in the user's thread) appends a record to the open `ProducerBatch` of its
partition in the `RecordAccumulator`. The `Sender` decides which batches go into which Produce
request, retries them, and keeps their order with one `InFlightBatches` per partition. The
`ProducerCore` sends the requests on the loop, and `DeliveryReports` brings the outcomes back to the
user's thread.
"""

from barnabas.client.producer.aio import AioProducer
from barnabas.client.producer.plain import Producer

__all__ = ["AioProducer", "Producer"]
