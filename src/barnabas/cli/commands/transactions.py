"""`barnabas transactions`: list transactions, and abort hanging ones."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import admin_command


@click.group("transactions")
def command() -> None:
    """List transactions, and abort hanging ones."""


@command.command("list")
@admin_command
def list_(connection: Connection, display: Display) -> None:
    """List the transactional ids and their states."""
    from barnabas.cli.operations.transactions import list_transactions

    rows = [
        (transaction.transactional_id, broker, transaction.producer_id, transaction.state.value)
        for broker, transaction in connection.run(list_transactions)
    ]
    display.print_table(["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"], rows)


@command.command("hanging")
@click.option("--topic", help="Only in this topic.")
@click.option("--minutes", default=15, show_default=True, help="Only transactions open for longer.")
@admin_command
def hanging(connection: Connection, display: Display, topic: str | None, minutes: int) -> None:
    """Find transactions that are open on a partition but unknown to any coordinator."""
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
@click.argument("partition", type=int)
@click.argument("offset", type=int)
@admin_command
def abort(
    connection: Connection, display: Display, topic: str, partition: int, offset: int
) -> None:
    """Abort the transaction that starts at OFFSET of a partition."""
    from barnabas.cli.operations.transactions import find_transaction
    from barnabas.client.admin import AioAdminClient

    async def collect(admin: AioAdminClient) -> None:
        await admin.abort_transaction(await find_transaction(admin, (topic, partition), offset))

    connection.run(collect)
    display.print_result(
        f"The transaction at {offset} of {topic}-{partition} is aborted.",
        topic=topic,
        partition=partition,
        aborted=offset,
    )
