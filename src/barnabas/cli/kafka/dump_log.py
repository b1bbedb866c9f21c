"""kafka-dump-log: what the files of a partition hold, and whether they fit together."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.options import Flat

if TYPE_CHECKING:
    from barnabas.cli.operations.dump.decoders import Decoder

PURPOSE = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging"
    " a seemingly corrupt log segment."
)
DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    options.require(chosen, "files")
    from barnabas.cli.operations.dump import Dump, dump

    decode = _decoder(options, chosen)
    what = Dump(
        decode=decode,
        deep=chosen.deep_iteration or decode is not None,
        record_metadata=not chosen.skip_record_metadata,
        only_verify=chosen.verify_index_only,
        only_sanity=chosen.index_sanity_check,
        max_bytes=chosen.max_bytes,
    )
    try:
        for line in dump([Path(each.strip()) for each in chosen.files.split(",")], what):
            print(line)
    except OSError as error:
        print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"that is no file of a partition: {error}", file=sys.stderr)
        return 1
    return 0


def _options() -> Flat:
    options = Flat("kafka-dump-log", PURPOSE)
    options.value("--files", "file1, file2, ...", "REQUIRED: The data and index files to dump.")
    options.flag("--print-data-log", "Print keys and values as well.")
    options.flag("--deep-iteration", "Tell of each record, not of batches alone.")
    options.flag("--skip-record-metadata", "Leave out what is not key or value, and markers.")
    options.flag("--verify-index-only", "Verify indexes without printing their entries.")
    options.flag("--index-sanity-check", "Check indexes as a broker does when it starts.")
    size = "The most bytes of a log file to read."
    options.value("--max-bytes", "size", size, type=int, default=2**31 - 1)
    largest = "Accepted, and of no effect: batches are read whole, whatever their size."
    options.value("--max-message-size", "size", largest, type=int)
    decoded = "How to read {}: StringDecoder, IntegerDecoder, LongDecoder or DoubleDecoder."
    for part in "key", "value":
        options.value(f"--{part}-decoder-class", "class", decoded.format(f"{part}s"))
    options.flag("--offsets-decoder", "Read the records of __consumer_offsets.")
    options.flag("--transaction-log-decoder", "Read the records of __transaction_state.")
    options.flag("--cluster-metadata-decoder", "Read the records of __cluster_metadata.")
    options.flag("--share-group-state-decoder", "Read the records of __share_group_state.")
    options.flag("--remote-log-metadata-decoder", "Read the records of __remote_log_metadata.")
    return options


def _decoder(options: Flat, chosen: Namespace) -> "Decoder | None":
    from barnabas.cli.operations.dump import decoders

    of_topics: dict[str, Decoder] = {
        "offsets_decoder": decoders.offsets,
        "transaction_log_decoder": decoders.transactions,
        "cluster_metadata_decoder": decoders.cluster_metadata,
        "share_group_state_decoder": decoders.share_state,
        "remote_log_metadata_decoder": decoders.remote_log_metadata,
    }
    for name, decoder in of_topics.items():
        if getattr(chosen, name):
            return decoder
    classes = [chosen.key_decoder_class, chosen.value_decoder_class]
    if not chosen.print_data_log and classes == [None, None]:
        return None
    return decoders.plain(*(_class(options, each or DEFAULT_DECODER) for each in classes))


def _class(options: Flat, name: str) -> Callable[[bytes], str]:
    from barnabas.cli.operations.dump.decoders import CLASSES

    decode = CLASSES.get(name.rpartition(".")[2])
    if decode is None:
        options.refuse(f"There is no decoder {name} here; there are {', '.join(CLASSES)}.")
    return decode
