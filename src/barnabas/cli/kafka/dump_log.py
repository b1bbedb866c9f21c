"""kafka-dump-log: print the contents of partition files, and verify indexes."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, int32

if TYPE_CHECKING:
    from barnabas.cli.operations.dump.decoders import Decoder

PURPOSE = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging"
    " a seemingly corrupt log segment."
)
DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    parser.require_options(args, "files")
    from barnabas.cli.operations.dump import DumpOptions, dump_files

    decode = _decoder(parser, args)
    dump_options = DumpOptions(
        decode=decode,
        deep=args.deep_iteration or decode is not None,
        record_metadata=not args.skip_record_metadata,
        only_verify=args.verify_index_only,
        only_sanity=args.index_sanity_check,
        max_bytes=args.max_bytes,
    )
    for line in dump_files([Path(file.strip()) for file in args.files.split(",")], dump_options):
        print(line)
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser("kafka-dump-log", PURPOSE)
    parser.add_value("--files", "file1, file2, ...", "REQUIRED: The data and index files to dump.")
    parser.add_flag("--print-data-log", "Print keys and values as well.")
    parser.add_flag("--deep-iteration", "Print each record, not only batches.")
    parser.add_flag("--skip-record-metadata", "Print only keys and values.")
    parser.add_flag("--verify-index-only", "Verify indexes without printing their entries.")
    parser.add_flag("--index-sanity-check", "Check indexes as a broker does when it starts.")
    size = "The maximum bytes of a log file to read."
    parser.add_value("--max-bytes", "size", size, type=int32, default=2**31 - 1)
    largest = "Ignored: batches of any size are read."
    parser.add_value("--max-message-size", "size", largest, type=int32)
    decoded = "The decoder of {}: StringDecoder, IntegerDecoder, LongDecoder or DoubleDecoder."
    for part in "key", "value":
        parser.add_value(f"--{part}-decoder-class", "class", decoded.format(f"{part}s"))
    parser.add_flag("--offsets-decoder", "Read the records of __consumer_offsets.")
    parser.add_flag("--transaction-log-decoder", "Read the records of __transaction_state.")
    parser.add_flag("--cluster-metadata-decoder", "Read the records of __cluster_metadata.")
    parser.add_flag("--share-group-state-decoder", "Read the records of __share_group_state.")
    parser.add_flag("--remote-log-metadata-decoder", "Read the records of __remote_log_metadata.")
    return parser


def _decoder(parser: FlatParser, args: Namespace) -> "Decoder | None":
    from barnabas.cli.operations.dump import decoders

    of_topics: dict[str, Decoder] = {
        "offsets_decoder": decoders.decode_consumer_offsets,
        "transaction_log_decoder": decoders.decode_transaction_state,
        "cluster_metadata_decoder": decoders.decode_cluster_metadata,
        "share_group_state_decoder": decoders.decode_share_group_state,
        "remote_log_metadata_decoder": decoders.decode_remote_log_metadata,
    }
    for name, decoder in of_topics.items():
        if getattr(args, name):
            return decoder
    classes = [args.key_decoder_class, args.value_decoder_class]
    if not args.print_data_log and classes == [None, None]:
        return None
    return decoders.key_value_decoder(
        *(_class(parser, name or DEFAULT_DECODER) for name in classes)
    )


def _class(parser: FlatParser, name: str) -> Callable[[bytes], str]:
    from barnabas.cli.operations.dump.decoders import DECODER_CLASSES

    decode = DECODER_CLASSES.get(name.rpartition(".")[2])
    if decode is None:
        parser.usage_error(f"Unknown decoder {name}; use one of {', '.join(DECODER_CLASSES)}.")
    return decode
