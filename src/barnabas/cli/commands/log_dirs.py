"""`barnabas log-dirs`: the log directories of brokers, and their sizes."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import admin_command


@click.command("log-dirs")
@click.option("--broker", "brokers", type=int, multiple=True, help="Only these brokers.")
@click.option("--topic", "topics", multiple=True, help="Only these topics, by partition.")
@admin_command
def command(
    connection: Connection, display: Display, brokers: tuple[int, ...], topics: tuple[str, ...]
) -> None:
    """Show the log directories of brokers, or with --topic the replicas of topics in them."""
    from barnabas.cli.operations.cluster import describe_log_dirs, live_broker_ids
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.log_dirs import LogDirDescription

    async def collect(admin: AioAdminClient) -> dict[int, dict[str, LogDirDescription]]:
        return await describe_log_dirs(admin, brokers or await live_broker_ids(admin))

    log_dirs = connection.run(collect)
    located = [
        (broker, path, log_dir) for broker in log_dirs for path, log_dir in log_dirs[broker].items()
    ]
    if topics:
        rows = [
            (
                broker,
                path,
                f"{partition.topic}-{partition.partition}",
                replica.size,
                replica.offset_lag,
            )
            for broker, path, directory in located
            for partition, replica in sorted(directory.replica_infos.items())
            if partition.topic in topics
        ]
        display.print_table(["BROKER", "LOG DIR", "PARTITION", "BYTES", "OFFSET LAG"], rows)
        return
    display.print_table(
        ["BROKER", "LOG DIR", "REPLICAS", "BYTES", "FREE BYTES", "STATE"],
        [
            (
                broker,
                path,
                len(log_dir.replica_infos),
                sum(replica.size for replica in log_dir.replica_infos.values()),
                log_dir.usable_bytes if log_dir.usable_bytes >= 0 else None,
                "online" if log_dir.error is None else log_dir.error.str(),
            )
            for broker, path, log_dir in located
        ],
    )
