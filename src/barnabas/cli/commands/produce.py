"""`barnabas produce`: send lines of standard input as records."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.display import Display, count_of
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import (
    PARTITION,
    POSITIVE_INT32,
    client_command,
    registry_option,
    require_creation,
    require_topic,
)

if TYPE_CHECKING:
    from barnabas.cli.operations.lines import InputRecord

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
@click.option("--partition", "-p", type=PARTITION, help="[default: by key, or any]")
@click.option("--null", metavar="TEXT", help="Send a null for a key or value of this text.")
@click.option("--acks", type=click.Choice(["0", "1", "all"]), help="Acknowledgements to wait for.")
@click.option("--compression", "-z", type=click.Choice(CODECS), help="Compression type of batches.")
@registry_option()
@click.option(
    "--schema",
    "schema_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --registry: register this schema (.avsc, .json, .proto) and write values with it."
    "  [default: the latest of TOPIC-value]",
)
@click.option("--schema-id", type=POSITIVE_INT32, help="With --registry: write values with it.")
@click.option(
    "--key-schema",
    "key_schema_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The same as --schema for keys.  [default: the latest of TOPIC-key, or text]",
)
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
    registry: str | None,
    registry_config: str | None,
    **schema_options: Any,
) -> None:
    """Send each line of standard input to TOPIC.

    With --registry, lines are JSON and are written with the schema of the topic.

    \b
      echo hello | barnabas produce greetings
      barnabas produce users -k : -H source=file < users.txt
      echo '{"id": 1}' | barnabas produce orders --registry http://localhost:8081
    """
    from barnabas import Producer
    from barnabas.cli.operations.console_clients import (
        close_producer,
        input_lines,
        is_missing,
        send,
    )
    from barnabas.cli.operations.lines import LineReader

    if key_separator == "":
        raise click.BadParameter("must not be empty", param_hint="--key-separator")
    line_reader = LineReader(
        parse_key=key_separator is not None, key_separator=key_separator or "", null_marker=null
    )
    own = [_header(header) for header in headers]
    encode = _encoder(
        registry, registry_config, topic, has_keys=key_separator is not None, **schema_options
    )
    options = {"acks": acks, "compression.type": compression}
    producer = Producer(settings | {name: value for name, value in options.items() if value})
    delivered = _DeliveryReports()
    failure: CommandError | None = None
    try:
        require_topic(producer)
        is_new = is_missing(producer, topic)
        for number, record in enumerate(line_reader.records(input_lines()), 1):
            where = -1 if partition is None else partition
            record = encode(number, record)._replace(headers=own)
            send(producer, topic, record, delivered, where)
            if is_new:
                require_creation(producer, topic)
                is_new = False
        producer.flush()
    except CommandError as error:
        failure = error
    finally:
        close_producer(producer)
    if failure is not None:
        raise delivered.with_count(failure)
    if delivered.errors:
        first = delivered.errors[0].str()
        raise CommandError(
            f"{count_of(len(delivered.errors), 'record')} failed, {delivered.records} were "
            f"delivered: {first}"
        )
    delivered.print(display, topic)


def _encoder(
    registry: str | None,
    registry_config: str | None,
    topic: str,
    *,
    has_keys: bool,
    schema_file: Path | None,
    schema_id: int | None,
    key_schema_file: Path | None,
) -> "Callable[[int, InputRecord], InputRecord]":
    """Returns what converts a record, given with the number of its line."""
    if not registry:
        if schema_file or schema_id or key_schema_file:
            raise click.UsageError("--schema, --schema-id and --key-schema need --registry.")
        return lambda _, record: record
    if schema_file and schema_id:
        raise click.UsageError("give --schema or --schema-id, not both.")
    from barnabas.cli.operations.schema_records import LineEncoder, find_encoder
    from barnabas.cli.operations.schemas import open_registry

    client = open_registry(registry, registry_config)
    value = find_encoder(client, f"{topic}-value", schema_file, schema_id)
    if value is None:
        raise CommandError(
            f"{topic}-value has no schema in the registry: give one with --schema FILE, or send"
            " lines as they are with --registry ''"
        )
    key = find_encoder(client, f"{topic}-key", key_schema_file) if has_keys else None
    return LineEncoder(key, value).encode


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

    def with_count(self, error: CommandError) -> CommandError:
        """Returns the error of a line, with the number of records that were sent before it."""
        if not self.records:
            return error
        verb = "was" if self.records == 1 else "were"
        return CommandError(
            f"{error}; {count_of(self.records, 'record')} before it {verb} produced"
        )

    def print(self, display: Display, topic: str) -> None:
        if display.as_json:
            display.print_json({"topic": topic, "records": self.records})
        else:
            click.echo(f"{count_of(self.records, 'record')} produced to {topic}.", err=True)


def _header(pair: str) -> tuple[str, bytes | None]:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--header")
    return name, value.encode()
