"""kafka-leader-election: have preferred replicas lead, or any where none in sync is left."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Flat, connect, is_given
from barnabas.cli.operations.errors import Refused

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient

SCOPES = ("topic", "all-topic-partitions", "path-to-json-file")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    with reasons_to_stderr():
        _check(chosen)
        return connect(chosen).ask(lambda admin: _elect(admin, chosen))


def _options() -> Flat:
    options = Flat(
        "kafka-leader-election",
        "This tool attempts to elect a new leader for a set of topic partitions. The type of "
        "elections supported are preferred replicas and unclean replicas.",
    )
    options.connection()
    options.value("--admin.config", "file", "The same as --command-config.", dest="command_config")
    options.value(
        "--election-type",
        "PREFERRED|UNCLEAN",
        "Who is to lead: the preferred replica, or any that is there.",
        type=str.upper,
        choices=("PREFERRED", "UNCLEAN"),
    )
    options.value("--topic", "topic", "The topic of the partition.")
    options.value("--partition", "id", "The partition.", type=int)
    options.flag("--all-topic-partitions", "All partitions that need it.")
    options.value(
        "--path-to-json-file",
        "file",
        'The partitions: {"partitions": [{"topic": ..., "partition": 1}]}.',
    )
    return options


def _check(chosen: Namespace) -> None:
    missing = [name for name in ("bootstrap-server", "election-type") if not is_given(chosen, name)]
    if missing:
        raise Refused(f"Missing required option(s): {', '.join(missing)}")
    scopes = [name for name in SCOPES if is_given(chosen, name)]
    if len(scopes) != 1:
        raise Refused(f"One and only one of the following options is required: {', '.join(SCOPES)}")
    if (chosen.topic is None) != (chosen.partition is None):
        raise Refused("Missing required option(s): --topic and --partition go together")


async def _elect(admin: "AioAdminClient", chosen: Namespace) -> int:
    from barnabas.cli.kafka.errors import java_text
    from barnabas.cli.operations.partitions import elect, partitions_in
    from barnabas.client.admin.enums import ElectionType

    partitions = None
    if chosen.topic is not None:
        partitions = [(chosen.topic, chosen.partition)]
    elif chosen.path_to_json_file is not None:
        listed = partitions_in(chosen.path_to_json_file, "Replica election data")
        partitions = [(each["topic"], each["partition"]) for each in listed]
    outcome = await elect(admin, ElectionType[chosen.election_type], partitions)
    if outcome.elected:
        print(
            f"Successfully completed leader election ({chosen.election_type}) for partitions "
            f"{_text(outcome.elected)}"
        )
    if outcome.not_needed:
        print(f"Valid replica already elected for partitions {_text(outcome.not_needed)}")
    for (topic, index), error in outcome.failures.items():
        print(
            f"Error completing leader election ({chosen.election_type}) for partition: "
            f"{topic}-{index}: {java_text(error)}"
        )
    if outcome.failures:
        print(f"{len(outcome.failures)} replica(s) could not be elected", file=sys.stderr)
    return 1 if outcome.failures else 0


def _text(partitions: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in partitions)
