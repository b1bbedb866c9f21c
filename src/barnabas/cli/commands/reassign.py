"""`barnabas reassign`: move partitions to other brokers."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.display import Display, count_of
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import raise_for_errors
from barnabas.cli.options import INT32, CommandGroup, admin_command, confirm, yes_option

if TYPE_CHECKING:
    from barnabas.cli.operations.reassignments import ReassignmentTarget
    from barnabas.client.admin import AioAdminClient

POLL_S = 0.5

_file = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group("reassign", cls=CommandGroup)
def command() -> None:
    """Move partitions to other brokers."""


@command.command("propose")
@click.argument("topics", nargs=-1, required=True)
@click.option("--to", "brokers", type=INT32, multiple=True, required=True, help="A broker id.")
@admin_command
def propose(
    connection: Connection, display: Display, topics: tuple[str, ...], brokers: tuple[int, ...]
) -> None:
    """Print a proposed assignment of topics to brokers, as a file for `start`.

    \b
      barnabas reassign propose orders --to 1 --to 2 --to 3 > plan.json
    """
    from barnabas.cli.operations.reassignments import propose_assignment

    proposed = connection.run(
        lambda admin: propose_assignment(admin, topics, brokers, by_rack=True)
    )
    partitions = [
        {"topic": topic, "partition": index, "replicas": ids}
        for (topic, index), ids in sorted(proposed.items())
    ]
    display.print_json({"version": 1, "partitions": partitions})


@command.command("start")
@_file
@click.option(
    "--throttle", type=click.IntRange(1), help="Replication throttle in bytes per second."
)
@click.option(
    "--wait", is_flag=True, help="Wait until all are completed, then remove the throttle."
)
@yes_option
@admin_command
def start(
    connection: Connection,
    display: Display,
    file: Path,
    throttle: int | None,
    wait: bool,
    yes: bool,
) -> None:
    """Start the reassignment in FILE, which has the format of kafka-reassign-partitions.

    \b
      barnabas reassign propose orders --to 1 --to 2 --to 3 > plan.json
      barnabas reassign start plan.json --wait
    """
    from barnabas.cli.operations import reassignments, throttles

    target = reassignments.read_target(file)
    reassignments.validate_target(target)
    count = count_of(len(target.replicas), "partition")
    confirm(f"Move {count} of {', '.join(target.topics)}?", yes=yes)

    async def collect(admin: "AioAdminClient") -> None:
        await reassignments.require_brokers(admin, target)
        current = await reassignments.current_replicas(admin, target.replicas)
        moves = await reassignments.list_reassignments(admin)
        if throttle is not None:
            await throttles.throttle_replication(admin, current, target.replicas, moves, throttle)
        raise_for_errors(await reassignments.start_reassignment(admin, target))
        if wait:
            await _wait_until_completed(admin, target, quiet=display.as_json)
            await _clear_throttles(admin, target)

    connection.run(collect)
    done = "reassigned" if wait else "being reassigned"
    display.print_result(f"{count} {done}.", partitions=len(target.replicas), done=wait)


@command.command("list")
@admin_command
def list_(connection: Connection, display: Display) -> None:
    """List the reassignments in progress.

    \b
      barnabas reassign list
    """
    from barnabas.cli.operations.reassignments import list_reassignments

    rows = [
        (
            f"{topic}-{index}",
            ",".join(map(str, move.replicas)),
            ",".join(map(str, move.adding_replicas)),
            ",".join(map(str, move.removing_replicas)),
        )
        for (topic, index), move in connection.run(list_reassignments).items()
    ]
    display.print_table(["PARTITION", "REPLICAS", "ADDING", "REMOVING"], rows)


@command.command("cancel")
@yes_option
@admin_command
def cancel(connection: Connection, display: Display, yes: bool) -> None:
    """Cancel all reassignments in progress.

    \b
      barnabas reassign cancel
    """
    from barnabas.cli.operations import reassignments

    confirm("Cancel all reassignments in progress?", yes=yes)

    async def collect(admin: "AioAdminClient") -> int:
        moves = await reassignments.list_reassignments(admin)
        if moves:
            raise_for_errors(await reassignments.cancel_reassignments(admin, moves))
        return len(moves)

    count = connection.run(collect)
    display.print_result(f"{count_of(count, 'reassignment')} cancelled.", cancelled=count)


async def _wait_until_completed(
    admin: "AioAdminClient", target: "ReassignmentTarget", *, quiet: bool
) -> None:
    """Wait until all are completed, with a progress bar on a terminal."""
    import asyncio

    from barnabas.cli.operations.reassignments import list_reassignments

    total = len(target.replicas)
    with click.progressbar(length=total, label="reassigning", hidden=quiet) as bar:
        done = 0
        while done < total:
            moves = await list_reassignments(admin)
            now = total - sum(partition in moves for partition in target.replicas)
            bar.update(now - done)
            done = now
            if done < total:
                await asyncio.sleep(POLL_S)


async def _clear_throttles(admin: "AioAdminClient", target: "ReassignmentTarget") -> None:
    from barnabas.cli.operations.throttles import clear_broker_throttles, clear_topic_throttles

    await clear_broker_throttles(
        admin, [node.id for node in (await admin.describe_cluster()).nodes]
    )
    await clear_topic_throttles(admin, target.topics)
