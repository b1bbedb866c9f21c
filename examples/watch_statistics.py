"""Print the statistics of a producer: sent and waiting messages.

It ends when all messages are acknowledged.

    python watch_statistics.py localhost:9092 load 10000
"""

import json
import sys
import time

from barnabas import Producer


def main(servers: str, topic: str, count: str) -> None:
    seen: list[dict[str, object]] = []

    def on_statistics(text: str) -> None:
        statistics = json.loads(text)
        seen.append(statistics)
        up = [broker for broker in statistics["brokers"].values() if broker["state"] == "UP"]
        print(
            f"{statistics['type']} {statistics['client_id']}: "
            f"sent {statistics['txmsgs']}, waiting {statistics['msg_cnt']}, "
            f"connected: {'yes' if up else 'no'}"
        )

    producer = Producer(
        {
            "bootstrap.servers": servers,
            "client.id": "watched",
            "stats_cb": on_statistics,
            "statistics.interval.ms": 200,
        }
    )
    for number in range(int(count)):
        producer.produce(topic, f"message {number}")
        producer.poll(0)
    if waiting := producer.flush(30):
        sys.exit(f"{waiting} messages are not acknowledged after 30 s")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (seen and is_done(seen[-1], int(count))):
        producer.poll(0.1)


def is_done(statistics: dict[str, object], count: int) -> bool:
    """Messages that are sent but not acknowledged."""
    return statistics["txmsgs"] == count and statistics["msg_cnt"] == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
