"""kafka-delete-records: delete the records of partitions before an offset."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = FlatParser(
        "kafka-delete-records",
        "This tool helps to delete records of the given partitions down to the specified offset.",
    )
    parser.add_connection_options()
    parser.add_value(
        "--offset-json-file",
        "file",
        'The offsets: {"version": 1, "partitions": [{"topic": ..., "partition": 0, "offset": 3}]}.',
    )
    args = parser.parse(arguments)
    parser.require_options(args, "bootstrap-server", "offset-json-file")
    connection_from(args).run(lambda admin: _delete(admin, args))
    return 0


async def _delete(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.kafka.output import java_text
    from barnabas.cli.operations.partitions import delete_records, read_offsets

    offsets = read_offsets(args.offset_json_file)
    print("Executing records delete operation")
    deleted, failures = await delete_records(admin, offsets)
    print("Records delete operation completed:")
    for topic, index in offsets:
        if (topic, index) in failures:
            print(f"partition: {topic}-{index}\terror: {java_text(failures[topic, index])}")
        else:
            print(f"partition: {topic}-{index}\tlow_watermark: {deleted[topic, index]}")
