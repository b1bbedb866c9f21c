"""kafka-verifiable-consumer: consumes in a group, and a line of JSON for all that happens."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import client_settings, tell_renamed
from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Plain
from barnabas.cli.kafka.output import emit
from barnabas.cli.operations.settings import JAVA_CONSUMER
from barnabas.cli.signals import until_stopped

PURPOSE = (
    "This tool consumes messages from a specific topic and emits consumer events (e.g. group"
    " rebalances, received messages, and offsets committed) as JSON objects to STDOUT."
)
_AT_ONCE = 500
_SLICE_S = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    renamed = {"consumer.config": "command-config"}
    tell_renamed(chosen, renamed, options.error, "Option --{} has been deprecated")
    with reasons_to_stderr(), until_stopped():
        return _run(chosen)


def _options() -> Plain:
    options = Plain("verifiable-consumer", PURPOSE)
    option = options.add_argument
    option("--topic", required=True, help="Consumes messages from this topic.")
    servers = "The brokers to connect to."
    option("--bootstrap-server", required=True, metavar="HOST:PORT,...", help=servers)
    option("--group-id", required=True, help="The group to consume in.")
    option("--group-protocol", default="classic", help="classic or consumer.")
    option("--group-remote-assignor", help="The broker's assignor, in the consumer protocol.")
    option("--group-instance-id", help="Makes it a static member.")
    option("--max-messages", type=int, default=-1, help="How many; -1 goes on until it is stopped.")
    option("--session-timeout", metavar="MS", help="In the classic protocol.")
    option("--verbose", action="store_true", help="A line for each record.")
    option("--enable-autocommit", action="store_true", help="Commit now and then, not each time.")
    option("--reset-policy", default="earliest", help="earliest, latest or none.")
    option("--assignment-strategy", help="The assignor, in the classic protocol.")
    option("--command-config", type=Path, metavar="FILE", help="A file of settings.")
    option("--consumer.config", dest="consumer_config", metavar="FILE", help="The same.")
    return options


def _run(chosen: Namespace) -> int:
    from barnabas import Consumer

    def told(name: str) -> Any:
        return lambda _, places: emit(name, partitions=_places(places))

    consumer = Consumer(_settings(chosen))
    emit("startup_complete")
    try:
        consumer.subscribe(
            [chosen.topic],
            on_assign=told("partitions_assigned"),
            on_revoke=told("partitions_revoked"),
            on_lost=told("partitions_lost"),
        )
        left = chosen.max_messages
        while left != 0:
            most = _AT_ONCE if left < 0 else min(left, _AT_ONCE)
            messages = [m for m in consumer.consume(most, _SLICE_S) if m.error() is None]
            if messages:
                _tell(messages, chosen)
                left = left - len(messages) if left > 0 else left
                if not chosen.enable_autocommit:
                    _commit(consumer, messages)
    finally:
        consumer.close()
        emit("shutdown_complete")
        emit("shutdown_requested")
    return 0


def _settings(chosen: Namespace) -> dict[str, Any]:
    own = {
        "bootstrap.servers": chosen.bootstrap_server,
        "group.id": chosen.group_id,
        "group.protocol": chosen.group_protocol.lower(),
        "auto.offset.reset": chosen.reset_policy,
        "enable.auto.commit": str(chosen.enable_autocommit).lower(),
    }
    defaults = dict(JAVA_CONSUMER)
    if own["group.protocol"] == "consumer":
        del defaults["partition.assignment.strategy"]
        own |= _told("group.remote.assignor", chosen.group_remote_assignor)
    else:
        own |= _told("partition.assignment.strategy", chosen.assignment_strategy)
        own |= _told("session.timeout.ms", chosen.session_timeout)
    own |= _told("group.instance.id", chosen.group_instance_id)
    file = chosen.command_config or chosen.consumer_config
    return client_settings(file, [], {**defaults, **own})


def _told(name: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {name: value}


def _tell(messages: Sequence[Any], chosen: Namespace) -> None:
    ranges: dict[tuple[str, int], list[int]] = {}
    for message in messages:
        ranges.setdefault((message.topic(), message.partition()), []).append(message.offset())
        if chosen.verbose:
            emit(
                "record_data",
                key=_text(message.key()),
                value=_text(message.value()),
                topic=message.topic(),
                partition=message.partition(),
                offset=message.offset(),
            )
    partitions = [
        {
            "topic": topic,
            "partition": partition,
            "count": len(offsets),
            "minOffset": offsets[0],
            "maxOffset": offsets[-1],
        }
        for (topic, partition), offsets in ranges.items()
    ]
    emit("records_consumed", count=len(messages), partitions=partitions)


def _commit(consumer: Any, messages: Sequence[Any]) -> None:
    from barnabas import KafkaException, TopicPartition

    ends = {(m.topic(), m.partition()): m.offset() + 1 for m in messages}
    places = [TopicPartition(*place, offset) for place, offset in ends.items()]
    offsets = [
        {"topic": each.topic, "partition": each.partition, "offset": each.offset} for each in places
    ]
    try:
        consumer.commit(offsets=places, asynchronous=False)
    except KafkaException as refused:
        error = refused.args[0]
        emit("offsets_committed", offsets=offsets, success=False, error=error.str())
    else:
        emit("offsets_committed", offsets=offsets, success=True)


def _places(places: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partition": each.partition} for each in places]


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")
