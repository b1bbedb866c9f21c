"""kafka-log-dirs: the log directories of brokers, as JSON."""

import json
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.log_dirs import LogDirDescription


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = FlatParser(
        "kafka-log-dirs", "This tool helps to query log directory usage on the specified brokers."
    )
    parser.add_connection_options()
    parser.add_flag("--describe", "Describe the log directories.")
    parser.add_value("--broker-list", "0,1,2", "The brokers. (default: all)", default="")
    parser.add_value("--topic-list", "t1,t2", "The topics. (default: all)", default="")
    args = parser.parse(arguments)
    parser.require_options(args, "bootstrap-server", "describe")
    connection_from(args).run(lambda admin: _describe(admin, args))
    return 0


async def _describe(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.cluster import describe_log_dirs, live_broker_ids

    live = await live_broker_ids(admin)
    try:
        requested = [int(broker) for broker in args.broker_list.split(",") if broker.strip()]
    except ValueError:
        raise CommandError(f"--broker-list expects numbers, not {args.broker_list}") from None
    if missing := [broker for broker in dict.fromkeys(requested) if broker not in live]:
        raise CommandError(
            "ERROR: The given brokers do not exist from --broker-list: "
            f"{','.join(map(str, missing))}. Current existent brokers: {','.join(map(str, live))}"
        )
    brokers = requested or live
    topics = {topic.strip() for topic in args.topic_list.split(",") if topic.strip()}
    print("Querying brokers for log directories information")
    described = await describe_log_dirs(admin, brokers)
    print(f"Received log directory information from brokers {','.join(map(str, brokers))}")
    entries = [
        {
            "broker": broker,
            "logDirs": [
                _directory(path, directory, topics) for path, directory in directories.items()
            ],
        }
        for broker, directories in described.items()
    ]
    print(json.dumps({"brokers": entries, "version": 1}, separators=(",", ":")))


def _directory(path: str, directory: "LogDirDescription", topics: set[str]) -> dict[str, Any]:
    from barnabas.cli.kafka.output import java_text

    return {
        "partitions": [
            {
                "partition": f"{partition.topic}-{partition.partition}",
                "size": replica.size,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for partition, replica in sorted(directory.replica_infos.items())
            if not topics or partition.topic in topics
        ],
        "error": None if directory.error is None else java_text(directory.error).split(":")[0],
        "logDir": path,
    }
