"""`barnabas perf`: measure producer and consumer throughput, and end-to-end latency."""

import random
from typing import Any

import click

from barnabas.cli.display import Display, progress_bar
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import (
    POSITIVE_INT32,
    CommandGroup,
    Seconds,
    client_command,
    require_topic,
)

_MEBIBYTE = 1 << 20
_INTERVAL_MS = 100
"""How often the progress bar is updated."""


@click.group("perf", cls=CommandGroup)
def command() -> None:
    """Measure throughput and end-to-end latency."""


@command.command("produce")
@click.argument("topic")
@click.option("--count", "-n", default=100_000, show_default=True, type=POSITIVE_INT32)
@click.option("--size", "-s", default=100, show_default=True, type=POSITIVE_INT32, help="Bytes.")
@click.option("--rate", "-r", default=-1.0, help="Maximum records per second.  [default: no limit]")
@client_command
def produce(
    settings: dict[str, Any], display: Display, topic: str, count: int, size: int, rate: float
) -> None:
    """Produce to TOPIC, and print throughput and latency.

    \b
      barnabas perf produce speed --count 1000000 --size 1000
    """
    from barnabas import Producer
    from barnabas.cli.operations.console_clients import close_producer, is_missing
    from barnabas.cli.operations.perf import (
        LatencyStats,
        ProduceLoad,
        measure_produce,
        random_letters,
    )

    load = ProduceLoad(topic, count, rate, reporting_interval_ms=_INTERVAL_MS)
    producer = Producer(settings)
    try:
        require_topic(producer)
        if is_missing(producer, topic):
            click.echo(f"Topic {topic} does not exist; the brokers may create it.", err=True)
        done = 0
        with progress_bar(f"produce to {topic}", count) as advance:

            def report(window: LatencyStats) -> None:
                nonlocal done
                done += window.count
                advance(done)

            stats = measure_produce(producer, load, random_letters(size), report)
    finally:
        close_producer(producer)
    records, mebibytes = stats.total.throughput()
    p50, p99 = stats.total.percentiles(0.5, 0.99)
    _show(
        display,
        {
            "records": stats.total.count,
            "seconds": round(stats.total.count / records, 3) if records else 0.0,
            "records/s": round(records),
            "MiB/s": round(mebibytes, 2),
            "avg ms": round(stats.total.average_ms, 2),
            "p50 ms": p50,
            "p99 ms": p99,
            "max ms": round(stats.total.max_ms, 2),
        },
    )
    if stats.errors:
        raise CommandError(
            f"{len(stats.errors)} records were not delivered: {stats.errors[0].str()}"
        )


@command.command("consume")
@click.argument("topic")
@click.option("--count", "-n", default=100_000, show_default=True, type=POSITIVE_INT32)
@click.option(
    "--timeout",
    default=5.0,
    type=Seconds(),
    show_default=True,
    help="Stop after this many seconds without records.",
)
@client_command
def consume(
    settings: dict[str, Any], display: Display, topic: str, count: int, timeout: float
) -> None:
    """Consume TOPIC from its beginning, and print the throughput.

    \b
      barnabas perf consume speed --count 1000000
    """
    from barnabas import Consumer
    from barnabas.cli.operations.perf import measure_consume

    own = {
        "group.id": f"barnabas-perf-{random.randrange(100_000)}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(own | settings)
    try:
        require_topic(consumer, topic)
        with progress_bar(f"consume {topic}", count) as advance:
            stats = measure_consume(
                consumer,
                topic,
                count,
                timeout_ms=int(timeout * 1000),
                interval_ms=_INTERVAL_MS,
                report=lambda so_far, _: advance(so_far.records),
            )
    finally:
        consumer.close()
    _show(
        display,
        {
            "records": stats.records,
            "seconds": round(stats.seconds, 3),
            "records/s": round(stats.records / stats.fetch_s),
            "MiB/s": round(stats.size_bytes / _MEBIBYTE / stats.fetch_s, 2),
            "rebalance ms": round(stats.rebalance_ms),
        },
    )
    if stats.has_timed_out:
        raise CommandError(
            f"{stats.records} of {count} records were consumed; none arrived for {timeout:g} s."
        )


@command.command("latency")
@click.argument("topic")
@click.option("--count", "-n", default=1_000, show_default=True, type=POSITIVE_INT32)
@click.option("--size", "-s", default=100, show_default=True, type=POSITIVE_INT32, help="Bytes.")
@click.option("--acks", type=click.Choice(["1", "all"]), default="all", show_default=True)
@client_command
def latency(
    settings: dict[str, Any], display: Display, topic: str, count: int, size: int, acks: str
) -> None:
    """Send records to TOPIC one at a time, and print how long each takes to be consumed.

    \b
      barnabas perf latency speed --count 10000
    """
    from barnabas.cli.operations.perf import RecordTemplate, measure_latency, open_clients

    with (
        open_clients(settings | {"acks": acks}, settings, topic, require_topic) as ends,
        progress_bar(f"latency of {topic}", count) as advance,
    ):
        sent = RecordTemplate(topic, size)
        ordered = sorted(measure_latency(ends, sent, count, lambda number, _: advance(number + 1)))

    def at(share: float) -> float:
        return round(ordered[int(share * (len(ordered) - 1))] / 1e6, 3)

    _show(
        display,
        {
            "records": count,
            "avg ms": round(sum(ordered) / count / 1e6, 3),
            "p50 ms": at(0.5),
            "p99 ms": at(0.99),
            "p99.9 ms": at(0.999),
            "max ms": at(1),
        },
    )


def _show(display: Display, figures: dict[str, float]) -> None:
    display.print_table([name.upper() for name in figures], [tuple(figures.values())])
