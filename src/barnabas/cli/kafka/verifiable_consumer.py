"""kafka-verifiable-consumer: consume in a group, and print a line of JSON per event."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import (
    CONSUMER_WAITS,
    MissingTopicWarning,
    java_client_settings,
    warn_of_deprecated,
)
from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import PlainParser, int32
from barnabas.cli.kafka.output import emit
from barnabas.cli.operations.settings import JAVA_CONSUMER_DEFAULTS

PURPOSE = (
    "This tool consumes messages from a specific topic and emits consumer events (e.g. group"
    " rebalances, received messages, and offsets committed) as JSON objects to STDOUT."
)
_MAX_POLL_RECORDS = 500
_POLL_S = 0.2


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    renamed = {"consumer.config": "command-config"}
    warn_of_deprecated(args, renamed, parser.error, "Option --{} has been deprecated")
    return _run(args)


def _build_parser() -> PlainParser:
    parser = PlainParser("verifiable-consumer", PURPOSE)
    option = parser.add_argument
    option("--topic", required=True, help="Consumes messages from this topic.")
    servers = "The brokers to connect to."
    option("--bootstrap-server", required=True, metavar="HOST:PORT,...", help=servers)
    option("--group-id", required=True, help="The group to consume in.")
    option("--group-protocol", default="classic", help="classic or consumer.")
    option("--group-remote-assignor", help="The broker's assignor, in the consumer protocol.")
    option("--group-instance-id", help="The id of a static member.")
    option("--max-messages", type=int32, default=-1, help="The number of messages; -1: no limit.")
    option("--session-timeout", metavar="MS", help="In the classic protocol.")
    option("--verbose", action="store_true", help="Print a line per record.")
    option("--enable-autocommit", action="store_true", help="Commit periodically.")
    option("--reset-policy", default="earliest", help="earliest, latest or none.")
    option("--assignment-strategy", help="The assignor, in the classic protocol.")
    option("--command-config", type=Path, metavar="FILE", help="A file of settings.")
    option("--consumer.config", dest="consumer_config", metavar="FILE", help="The same.")
    return parser


def _run(args: Namespace) -> int:
    from barnabas import Consumer

    def emit_partitions(name: str) -> Any:
        return lambda _, partitions: emit(name, partitions=_as_json(partitions))

    consumer = Consumer(_settings(args))
    emit("startup_complete")
    try:
        consumer.subscribe(
            [args.topic],
            on_assign=emit_partitions("partitions_assigned"),
            on_revoke=emit_partitions("partitions_revoked"),
            on_lost=emit_partitions("partitions_lost"),
        )
        warn_if_missing = MissingTopicWarning(consumer, args.topic, CONSUMER_WAITS)
        remaining = args.max_messages
        while remaining != 0:
            most = _MAX_POLL_RECORDS if remaining < 0 else min(remaining, _MAX_POLL_RECORDS)
            messages = [m for m in consumer.consume(most, _POLL_S) if m.error() is None]
            if messages:
                _emit_consumed(messages, args)
                remaining = remaining - len(messages) if remaining > 0 else remaining
                if not args.enable_autocommit:
                    _commit(consumer, messages)
            else:
                warn_if_missing()
    finally:
        consumer.close()
        emit("shutdown_complete")
        emit("shutdown_requested")
    return 0


def _settings(args: Namespace) -> dict[str, Any]:
    own = {
        "bootstrap.servers": args.bootstrap_server,
        "group.id": args.group_id,
        "group.protocol": args.group_protocol.lower(),
        "auto.offset.reset": args.reset_policy,
        "enable.auto.commit": str(args.enable_autocommit).lower(),
    }
    defaults = dict(JAVA_CONSUMER_DEFAULTS)
    if own["group.protocol"] == "consumer":
        del defaults["partition.assignment.strategy"]
        own |= _setting("group.remote.assignor", args.group_remote_assignor)
    else:
        own |= _setting("partition.assignment.strategy", args.assignment_strategy)
        own |= _setting("session.timeout.ms", args.session_timeout)
    own |= _setting("group.instance.id", args.group_instance_id)
    file = args.command_config or args.consumer_config
    return java_client_settings(file, [], {**defaults, **own})


def _setting(name: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {name: value}


def _emit_consumed(messages: Sequence[Any], args: Namespace) -> None:
    ranges: dict[tuple[str, int], list[int]] = {}
    for message in messages:
        ranges.setdefault((message.topic(), message.partition()), []).append(message.offset())
        if args.verbose:
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
    topic_partitions = [TopicPartition(*partition, offset) for partition, offset in ends.items()]
    offsets = [
        {"topic": partition.topic, "partition": partition.partition, "offset": partition.offset}
        for partition in topic_partitions
    ]
    try:
        consumer.commit(offsets=topic_partitions, asynchronous=False)
    except KafkaException as failure:
        error = failure.args[0]
        emit("offsets_committed", offsets=offsets, success=False, error=error.str())
    else:
        emit("offsets_committed", offsets=offsets, success=True)


def _as_json(partitions: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"topic": partition.topic, "partition": partition.partition} for partition in partitions
    ]


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")
