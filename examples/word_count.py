r"""Count words, with the counts in a topic.

The counts are the state: on start, the program reads them from the topic, and the last count of a
word replaces those before it. They are written in the transaction that commits the offsets, so no
word is counted twice. It ends when no line came for five seconds.

The topic should have cleanup.policy=compact: the brokers then remove the counts that were replaced,
and the program starts faster.

    barnabas topics create word-counts --config cleanup.policy=compact
    printf 'the castle\nthe village\n' | barnabas produce lines
    python word_count.py localhost:9092 lines word-counts
"""

import sys
from collections import Counter

from barnabas import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

WAIT_S = 1.0


def main(servers: str, lines: str, counts: str) -> Counter[str]:
    totals = restore(servers, counts)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{counts}-writer"})
    producer.init_transactions(30)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{counts}-reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([lines])
    idle = 0
    while idle < 5:
        batch = consumer.consume(500, timeout=WAIT_S)
        idle = 0 if batch or not consumer.assignment() else idle + 1
        if not batch:
            continue
        words = Counter(word for line in batch for word in words_of(line))
        totals += words
        producer.begin_transaction()
        for word in words:
            producer.produce(counts, key=word, value=str(totals[word]))
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction(30)
    consumer.close()
    return totals


def words_of(line: Message) -> list[str]:
    if line.error():
        raise KafkaException(line.error())
    return line.value().decode().lower().split()


def restore(servers: str, counts: str) -> Counter[str]:
    """Returns the last count of each word."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{counts}-restore",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    partitions = consumer.list_topics(counts, timeout=10).topics[counts].partitions
    consumer.assign([TopicPartition(counts, partition, 0) for partition in partitions])
    totals: Counter[str] = Counter()
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(10)
        if message is None:
            raise TimeoutError(f"{counts} does not end")
        if message.error():
            if message.error().code() != KafkaError._PARTITION_EOF:
                raise KafkaException(message.error())
            ended += 1
        else:
            totals[message.key().decode()] = int(message.value())
    consumer.close()
    return totals


if __name__ == "__main__":
    for word, count in main(*sys.argv[1:]).most_common():
        print(word, count)
