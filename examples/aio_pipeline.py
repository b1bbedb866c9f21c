"""A pipeline on asyncio: read, work on many records at a time, write, commit what is done.

python aio_pipeline.py localhost:9092 names greetings
"""

import asyncio
import sys

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
            greetings = await asyncio.gather(*(greet(m.value().decode()) for m in batch))
            # produce() waits for room in the buffer; what it returns is the delivery itself.
            deliveries = [await producer.produce(target, greeting) for greeting in greetings]
            await asyncio.gather(*deliveries)
            await consumer.commit(asynchronous=False)
            done += len(batch)
    return done


async def greet(name: str) -> str:
    """Somewhere else, over the network, slowly."""
    await asyncio.sleep(0.01)
    return f"Good day, {name}"


if __name__ == "__main__":
    print(asyncio.run(main(*sys.argv[1:])))
