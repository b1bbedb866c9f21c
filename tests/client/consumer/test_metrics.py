"""A consumer's figures, under Java's names."""

from barnabas import Consumer, Producer
from barnabas.testing import Broker

RECORDS = 100


def test_consumed_records_are_counted_by_topic_and_in_total() -> None:
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for _ in range(RECORDS):
            producer.produce("t", b"value")
        producer.flush()
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "client.id": "c",
            }
        )
        consumer.subscribe(["t"])
        seen = 0
        while seen < RECORDS - 10:
            seen += len(consumer.consume(RECORDS - 10 - seen, 10))
        metrics = consumer.metrics()
        fetches = "consumer-fetch-manager-metrics"
        assert metrics[f"{fetches}:records-consumed-total:{{client-id=c}}"] == RECORDS
        assert metrics[f"{fetches}:records-consumed-total:{{client-id=c, topic=t}}"] == RECORDS
        assert metrics[f"{fetches}:records-lag:{{client-id=c, partition=0, topic=t}}"] == 10
        assert metrics[f"{fetches}:records-lag-max:{{client-id=c}}"] == 10
        assert metrics[f"{fetches}:fetch-total:{{client-id=c}}"] > 0
        assert metrics["consumer-coordinator-metrics:assigned-partitions:{client-id=c}"] == 1
        assert metrics["consumer-metrics:incoming-byte-total:{client-id=c}"] > RECORDS * len(
            b"value"
        )
        consumer.unsubscribe()
        metrics = consumer.metrics()
        assert metrics[f"{fetches}:records-consumed-total:{{client-id=c, topic=t}}"] == RECORDS
        assert metrics["consumer-coordinator-metrics:assigned-partitions:{client-id=c}"] == 0
        consumer.close()
