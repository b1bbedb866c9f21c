"""`barnabas transactions`: list and describe transactions, and abort hanging ones."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import (
    INT32,
    INT64,
    PARTITION,
    CommandGroup,
    admin_command,
    confirm,
    yes_option,
)


@click.group("transactions", cls=CommandGroup)
def command() -> None:
    """List and describe transactions, and abort hanging ones."""


@command.command("list")
@admin_command
def list_(connection: Connection, display: Display) -> None:
    """List the transactional ids and their states.

    \b
      barnabas transactions list
    """
    from barnabas.cli.operations.transactions import list_transactions

    rows = [
        (transaction.transactional_id, broker, transaction.producer_id, transaction.state.value)
        for broker, transaction in connection.run(list_transactions)
    ]
    display.print_table(["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"], rows)


@command.command("describe")
@click.argument("transactional_id")
@admin_command
def describe(connection: Connection, display: Display, transactional_id: str) -> None:
    """Show the producer of TRANSACTIONAL_ID, and the partitions of its open transaction.

    \b
      barnabas transactions describe orders-1
    """
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.transactions import TransactionDescription

    async def fetch(admin: AioAdminClient) -> TransactionDescription:
        return (await admin.describe_transactions([transactional_id]))[transactional_id]

    described = connection.run(fetch)
    partitions = [f"{each.topic}-{each.partition}" for each in described.topic_partitions]
    display.print_table(
        ["COORDINATOR", "PRODUCER ID", "EPOCH", "STATE", "TIMEOUT MS", "STARTED MS", "PARTITIONS"],
        [
            (
                described.coordinator_id,
                described.producer_id,
                described.producer_epoch,
                described.state.value,
                described.transaction_timeout_ms,
                described.transaction_start_time_ms,
                partitions if display.as_json else ", ".join(partitions),
            )
        ],
    )


@command.command("hanging")
@click.option("--topic", help="Only in this topic.")
@click.option(
    "--minutes",
    default=15,
    show_default=True,
    type=INT32,
    help="Only transactions open for longer.",
)
@admin_command
def hanging(connection: Connection, display: Display, topic: str | None, minutes: int) -> None:
    """Find transactions that are open on a partition but unknown to any coordinator.

    \b
      barnabas transactions hanging --topic orders --minutes 60
    """
    from barnabas.cli.operations.transactions import find_hanging_transactions

    transactions = connection.run(
        lambda admin: find_hanging_transactions(
            admin, topic=topic, partition=None, broker_id=None, longer_than_minutes=minutes
        )
    )
    rows = [
        (*transaction.partition, transaction.producer.producer_id,
         transaction.producer.current_transaction_start_offset, transaction.minutes)
        for transaction in transactions
    ]  # fmt: skip
    display.print_table(["TOPIC", "PARTITION", "PRODUCER ID", "START OFFSET", "MINUTES"], rows)


@command.command("abort")
@click.argument("topic")
@click.argument("partition", type=PARTITION)
@click.argument("offset", type=INT64)
@yes_option
@admin_command
def abort(
    connection: Connection, display: Display, topic: str, partition: int, offset: int, yes: bool
) -> None:
    """Abort the transaction that starts at OFFSET of a partition.

    `barnabas transactions hanging` shows the offsets.

    \b
      barnabas transactions abort orders 0 1204
    """
    from barnabas.cli.operations.transactions import find_transaction
    from barnabas.client.admin import AioAdminClient

    async def collect(admin: AioAdminClient) -> None:
        await admin.abort_transaction(await find_transaction(admin, (topic, partition), offset))

    confirm(f"Abort the transaction at {offset} of {topic}-{partition}?", yes=yes)
    connection.run(collect)
    display.print_result(
        f"The transaction at {offset} of {topic}-{partition} is aborted.",
        topic=topic,
        partition=partition,
        aborted=offset,
    )
