r"""Print a topic in a consumer group, with manual commits.

With --until-end it ends at the end of the topic. Without, Ctrl-C ends it and leaves the group.

    printf 'ada:tea\nbob:jam\n' | barnabas produce drinks -k :
    python consume.py localhost:9092 printers drinks --until-end
"""

import sys

from barnabas import Consumer, KafkaError, KafkaException, Message, TopicPartition

COMMIT_EVERY = 100


def main(servers: str, group: str, topic: str, *options: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    ended: set[int] = set()
    assigned: set[int] = set()

    def on_assign(_: Consumer, partitions: list[TopicPartition]) -> None:
        assigned.update(partition.partition for partition in partitions)

    consumer.subscribe([topic], on_assign=on_assign)
    uncommitted = 0
    try:
        while not ("--until-end" in options and assigned and ended >= assigned):
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                if message.error().code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(message.error())
                ended.add(message.partition())
                continue
            show(message)
            uncommitted += 1
            if uncommitted == COMMIT_EVERY:
                consumer.commit(asynchronous=True)
                uncommitted = 0
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        if uncommitted:
            consumer.commit(asynchronous=False)
        consumer.close()


def show(message: Message) -> None:
    key = message.key().decode() if message.key() is not None else ""
    print(f"{key}: {message.value().decode()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
