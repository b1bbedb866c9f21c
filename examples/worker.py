r"""Process a topic in batches at least once: commit a batch after it is processed.

A worker that is killed during a batch processes that batch again. Results are stored by the offset
of their record, so processing a record twice has no effect. It ends when no record came for five
seconds.

    printf 'one\ntwo\n' | barnabas produce tasks
    python worker.py localhost:9092 workers tasks results
    cat results/*
"""

import sys
from pathlib import Path

from barnabas import Consumer, KafkaException, Message

BATCH = 50
WAIT_S = 1.0


def main(servers: str, group: str, topic: str, directory: str) -> int:
    """Returns the number of records processed until none arrived for a while."""
    results = Path(directory)
    results.mkdir(exist_ok=True)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    done = 0
    idle = 0
    try:
        while idle < 5:
            batch = consumer.consume(BATCH, timeout=WAIT_S)
            idle = 0 if batch or not consumer.assignment() else idle + 1
            for message in batch:
                if message.error():
                    raise KafkaException(message.error())
                work(message, results)
            if batch:
                consumer.commit(asynchronous=False)
                done += len(batch)
    finally:
        consumer.close()
    return done


def work(message: Message, results: Path) -> None:
    text = message.value().decode()
    if text == "poison":
        raise ValueError(f"cannot work on offset {message.offset()}")
    (results / f"{message.partition()}-{message.offset()}").write_text(text.upper())


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
