r"""A pipeline on asyncio: consume, process records concurrently, produce, and commit.

It ends when no record came for five seconds.

    printf 'ada\nbob\n' | barnabas produce guests
    python aio_pipeline.py localhost:9092 guests welcomes
    barnabas consume welcomes --exit
"""

import asyncio
import sys

from barnabas import KafkaException, Message
from barnabas.aio import Consumer, Producer

AT_ONCE = 100
WAIT_S = 1.0


async def main(servers: str, source: str, target: str) -> int:
    done = 0
    idle = 0
    async with (
        Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{source}-greeters",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        ) as consumer,
        Producer({"bootstrap.servers": servers}) as producer,
    ):
        await consumer.subscribe([source])
        while idle < 5:
            batch = await consumer.consume(AT_ONCE, timeout=WAIT_S)
            idle = 0 if batch or not await consumer.assignment() else idle + 1
            if not batch:
                continue
            greetings = await asyncio.gather(*(greet(name_in(m)) for m in batch))
            # produce() waits while the buffer is full; it returns a future of the delivery.
            deliveries = [await producer.produce(target, greeting) for greeting in greetings]
            await asyncio.gather(*deliveries)
            await consumer.commit(asynchronous=False)
            done += len(batch)
    return done


def name_in(message: Message) -> str:
    """Returns the value of a record. A message with an error has no value, but a description."""
    if message.error():
        raise KafkaException(message.error())
    return message.value().decode()


async def greet(name: str) -> str:
    """Stands for a slow call over the network."""
    await asyncio.sleep(0.01)
    return f"Good day, {name}"


if __name__ == "__main__":
    print(asyncio.run(main(*sys.argv[1:])))
