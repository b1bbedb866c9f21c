r"""Read the records between two times again, without commits.

The times are milliseconds since 1970. These are of the last hour:

    printf 'one\ntwo\n' | barnabas produce visitors
    python replay.py localhost:9092 visitors "$(($(date +%s) - 3600))000" "$(date +%s)999"
"""

import sys
from collections.abc import Iterator

from barnabas import Consumer, KafkaException, Message, TopicPartition


def main(servers: str, topic: str, from_ms: str, to_ms: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "replay", "enable.auto.commit": False}
    )
    try:
        for message in between(consumer, topic, int(from_ms), int(to_ms)):
            _, timestamp_ms = message.timestamp()
            print(f"{timestamp_ms} {message.value().decode()}")
    finally:
        consumer.close()


def between(consumer: Consumer, topic: str, from_ms: int, to_ms: int) -> Iterator[Message]:
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    starts = consumer.offsets_for_times(
        [TopicPartition(topic, partition, from_ms) for partition in partitions], timeout=10
    )
    ends = consumer.offsets_for_times(
        [TopicPartition(topic, partition, to_ms) for partition in partitions], timeout=10
    )
    remaining = {}
    for start, end in zip(starts, ends, strict=True):
        if start.offset < 0:
            continue  # no record is that late
        _, high = consumer.get_watermark_offsets(start, timeout=10)
        last = end.offset if end.offset >= 0 else high
        if start.offset < last:
            remaining[start.partition] = last
    consumer.assign([start for start in starts if start.partition in remaining])
    while remaining:
        message = consumer.poll(10)
        if message is None:
            raise TimeoutError(f"no record came; still missing up to {remaining}")
        if message.error():
            raise KafkaException(message.error())
        if message.offset() < remaining.get(message.partition(), 0):
            yield message
        if message.offset() + 1 >= remaining.get(message.partition(), 0):
            remaining.pop(message.partition(), None)


if __name__ == "__main__":
    main(*sys.argv[1:])
