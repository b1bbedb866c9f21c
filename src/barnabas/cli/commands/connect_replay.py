"""`barnabas connect replay-dlq`: dead letters back to their topics."""

from collections.abc import Mapping

import click

from barnabas.cli.display import Display, count_of, progress_bar
from barnabas.cli.options import client_command, require_topic


@click.command("replay-dlq")
@click.argument("topic")
@click.option("--connector", metavar="NAME", help="Only dead letters of this connector.")
@click.option(
    "--group",
    metavar="GROUP",
    help="The consumer group that keeps the progress.  [default: replay-TOPIC, or "
    "replay-TOPIC-NAME with --connector]",
)
@click.option("--dry-run", is_flag=True, help="Only count: send nothing and keep no progress.")
@client_command
def replay_dlq(
    settings: Mapping[str, str],
    display: Display,
    topic: str,
    connector: str | None,
    group: str | None,
    dry_run: bool,
) -> None:
    """Send the records of the dead letter queue TOPIC back to the topics that they came from.

    Each is sent back once, however often you repeat the command. It reads to the current end. Dead
    letters need the headers of errors.deadletterqueue.context.headers.enable=true; others stay.
    Those of sources are JSON, and are sent to the topic that they were meant for.

    \b
      barnabas connect replay-dlq orders-dlq --dry-run
      barnabas connect replay-dlq orders-dlq --connector orders
    """
    from barnabas.admin import AdminClient
    from barnabas.connect.execution.replay import ReplayProgress, replay

    with AdminClient(dict(settings)) as admin:
        require_topic(admin, topic)
    progress = ReplayProgress()
    rounds = replay(settings, topic, connector=connector, group=group, is_dry_run=dry_run)
    progress = next(rounds, progress)
    with progress_bar(f"replaying {topic}", progress.total) as advance:
        advance(progress.read)
        for progress in rounds:
            advance(progress.read)
    if display.as_json:
        display.print_json(
            {
                "read": progress.read,
                "replayed": progress.replayed,
                "without_origin": progress.without_origin,
                "of_other_connectors": progress.of_others,
                "topics": progress.topics or {},
            }
        )
        return
    verb = "would be sent back" if dry_run else "sent back"
    click.echo(f"{count_of(progress.replayed, 'record')} {verb}, of {progress.read} read.")
    for target, records in sorted((progress.topics or {}).items()):
        click.echo(f"  {target}: {records}")
    if progress.of_others:
        click.echo(f"{count_of(progress.of_others, 'record')} of other connectors left.")
    if progress.without_origin:
        click.echo(
            f"{count_of(progress.without_origin, 'record')} left that do not name their topic: "
            "the connector needs errors.deadletterqueue.context.headers.enable=true."
        )
