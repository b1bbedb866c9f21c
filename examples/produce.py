r"""Send lines of text, and print the delivery of each.

It ends with its input; Ctrl-C ends it earlier, after all deliveries.

    printf 'ada buys tea\nbob buys jam\n' | python produce.py localhost:9092 notes
"""

import sys
from collections.abc import Iterable

from barnabas import KafkaError, Message, Producer


def main(servers: str, topic: str, lines: Iterable[str] = sys.stdin) -> int:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "acks": "all"})
    try:
        for line in lines:
            send(producer, topic, line.rstrip("\n"))
            producer.poll(0)  # calls `delivered` for delivery reports
    except KeyboardInterrupt:
        print("interrupted")
    return producer.flush(30)  # the number of records not delivered


def send(producer: Producer, topic: str, text: str) -> None:
    """Wait while the queue is full, rather than lose a line."""
    while True:
        try:
            producer.produce(topic, value=text, key=text.partition(" ")[0], on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def delivered(error: KafkaError | None, message: Message) -> None:
    text = message.value().decode()
    if error is not None:
        print(f"failed: {text}: {error.str()}")
    else:
        print(f"delivered: {text}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
