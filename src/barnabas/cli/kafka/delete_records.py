"""kafka-delete-records: delete what lies before an offset of each partition."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Flat, connect

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient


def main(arguments: Sequence[str] | None = None) -> int:
    options = Flat(
        "kafka-delete-records",
        "This tool helps to delete records of the given partitions down to the specified offset.",
    )
    options.connection()
    options.value(
        "--offset-json-file",
        "file",
        'The offsets: {"version": 1, "partitions": [{"topic": ..., "partition": 0, "offset": 3}]}.',
    )
    chosen = options.parse(arguments)
    options.require(chosen, "bootstrap-server", "offset-json-file")
    with reasons_to_stderr():
        connect(chosen).ask(lambda admin: _delete(admin, chosen))
    return 0


async def _delete(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.kafka.errors import java_text
    from barnabas.cli.operations.partitions import delete_records, read_offsets

    offsets = read_offsets(chosen.offset_json_file)
    print("Executing records delete operation")
    deleted, failures = await delete_records(admin, offsets)
    print("Records delete operation completed:")
    for topic, index in offsets:
        if (topic, index) in failures:
            print(f"partition: {topic}-{index}\terror: {java_text(failures[topic, index])}")
        else:
            print(f"partition: {topic}-{index}\tlow_watermark: {deleted[topic, index]}")
