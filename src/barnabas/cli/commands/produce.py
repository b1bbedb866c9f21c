"""`barnabas produce`: send lines of standard input as records."""

from typing import Any

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import client_command, require_topic

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@click.command("produce")
@click.argument("topic")
@click.option("--key-separator", "-k", metavar="TEXT", help="Separates key and value in a line.")
@click.option(
    "--header",
    "-H",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of every record.",
)
@click.option("--partition", "-p", type=click.IntRange(0), help="[default: by key, or any]")
@click.option("--null", metavar="TEXT", help="Send a null for a key or value of this text.")
@click.option("--acks", type=click.Choice(["0", "1", "all"]), help="Acknowledgements to wait for.")
@click.option("--compression", "-z", type=click.Choice(CODECS), help="Compression type of batches.")
@client_command
def command(
    settings: dict[str, Any],
    display: Display,
    topic: str,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    null: str | None,
    acks: str | None,
    compression: str | None,
) -> None:
    """Send each line of standard input to TOPIC.

    \b
      echo hello | barnabas produce greetings
      barnabas produce users -k : -H source=file < users.txt
    """
    from barnabas import Producer
    from barnabas.cli.operations.console_clients import close_producer, input_lines, send
    from barnabas.cli.operations.lines import LineReader

    if key_separator == "":
        raise click.BadParameter("must not be empty", param_hint="--key-separator")
    line_reader = LineReader(
        parse_key=key_separator is not None, key_separator=key_separator or "", null_marker=null
    )
    own = [_header(header) for header in headers]
    options = {"acks": acks, "compression.type": compression}
    producer = Producer(settings | {name: value for name, value in options.items() if value})
    delivered = _DeliveryReports()
    try:
        require_topic(producer)
        for record in line_reader.records(input_lines()):
            where = -1 if partition is None else partition
            send(producer, topic, record._replace(headers=own), delivered, where)
        producer.flush()
    finally:
        close_producer(producer)
    if delivered.errors:
        first = delivered.errors[0].str()
        raise CommandError(
            f"{len(delivered.errors)} records failed, {delivered.records} were delivered: {first}"
        )
    delivered.print(display, topic)


class _DeliveryReports:
    """Counts delivery reports."""

    def __init__(self) -> None:
        self.records = 0
        self.errors: list[Any] = []

    def __call__(self, error: Any, _message: Any) -> None:
        if error is None:
            self.records += 1
        else:
            self.errors.append(error)

    def print(self, display: Display, topic: str) -> None:
        if display.as_json:
            display.print_json({"topic": topic, "records": self.records})
        else:
            noun = "record" if self.records == 1 else "records"
            click.echo(f"{self.records} {noun} produced to {topic}.", err=True)


def _header(pair: str) -> tuple[str, bytes | None]:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--header")
    return name, value.encode()
