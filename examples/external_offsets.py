r"""Store offsets in a database, in the same transaction as the results.

The group assigns the partitions; the position in each is read from SQLite. Because counts and
offsets are written in one transaction of the database, every record is counted exactly once. It
ends when no record came for five seconds.

    printf 'ada buys tea\nbob buys jam\n' | barnabas produce sentences
    python external_offsets.py localhost:9092 counters sentences counts.db
"""

import sqlite3
import sys

from barnabas import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

WAIT_S = 1.0
TABLES = """
    create table if not exists offsets (part integer primary key, next integer);
    create table if not exists counts (word text primary key, n integer);
"""


def main(servers: str, group: str, topic: str, database: str) -> dict[str, int]:
    store = sqlite3.connect(database)
    store.executescript(TABLES)
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
    )

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        offsets = dict(store.execute("select part, next from offsets"))
        for partition in partitions:
            partition.offset = offsets.get(partition.partition, OFFSET_BEGINNING)
        print(f"assigned {sorted(partition.partition for partition in partitions)}")
        consumer.assign(partitions)

    def on_revoke(_: Consumer, partitions: list[TopicPartition]) -> None:
        store.commit()  # the next owner of the partitions continues here
        print(f"revoked {sorted(partition.partition for partition in partitions)}")

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
    idle = 0
    try:
        while idle < 5:
            message = consumer.poll(WAIT_S)
            idle = 0 if message is not None or not consumer.assignment() else idle + 1
            if message is not None:
                if message.error():
                    raise KafkaException(message.error())
                count(store, message)
    finally:
        consumer.close()
    return dict(store.execute("select word, n from counts order by word"))


def count(store: sqlite3.Connection, message: Message) -> None:
    with store:
        for word in message.value().decode().split():
            store.execute(
                "insert into counts values (?, 1) on conflict do update set n = n + 1", (word,)
            )
        store.execute(
            "insert or replace into offsets values (?, ?)",
            (message.partition(), message.offset() + 1),
        )


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
