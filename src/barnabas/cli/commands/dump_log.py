"""`barnabas dump-log`: print the contents of partition files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.display import Display

if TYPE_CHECKING:
    from barnabas.cli.operations.dump.decoders import Decoder

_RECORDS = (".log", ".checkpoint")
_SUFFIXES = (*_RECORDS, ".index", ".timeindex", ".txnindex", ".snapshot")
_TOPICS = (
    "__cluster_metadata",
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__remote_log_metadata",
)


@click.command("dump-log")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--records", "-r", is_flag=True, help="Print each record with its key and value.")
@click.option(
    "--topic",
    type=click.Choice(_TOPICS),
    metavar="NAME",
    help="The internal topic the records belong to, such as __consumer_offsets."
    "  [default: from the directory name]",
)
@click.option("--verify", is_flag=True, help="Only verify the indexes.")
@click.option(
    "--max-bytes", type=click.IntRange(1), default=2**31 - 1, help="Bytes to read of each file."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per batch.")
def command(
    files: tuple[Path, ...],
    records: bool,
    topic: str | None,
    verify: bool,
    max_bytes: int,
    as_json: bool,
) -> None:
    """Print the contents of FILES: segments, indexes, snapshots, or partition directories.

    \b
      barnabas dump-log data/orders-0 -r
      barnabas dump-log data/__cluster_metadata-0 -r --json
    """
    from barnabas.cli.operations.dump import DumpOptions, dump_files

    paths = [path for file in files for path in _files(file)]
    decode = _decoder(paths, topic) if records or topic else None
    if as_json:
        _print_rows(paths, decode, max_bytes)
        return
    for line in dump_files(paths, DumpOptions(decode, only_verify=verify, max_bytes=max_bytes)):
        click.echo(line)


def _print_rows(paths: Sequence[Path], decode: "Decoder | None", max_bytes: int) -> None:
    from barnabas.cli.operations.dump.records import batch_rows

    display = Display(as_json=True)
    for path in paths:
        if path.suffix in _RECORDS:
            for row in batch_rows(path, decode, max_bytes):
                display.print_json(row)


def _files(file: Path) -> list[Path]:
    """Returns the file itself, or the partition files of a directory."""
    if not file.is_dir():
        return [file]
    return sorted(path for path in file.iterdir() if path.suffix in _SUFFIXES)


def _decoder(paths: Sequence[Path], topic: str | None) -> "Decoder":
    from barnabas.cli.operations.dump.decoders import TOPIC_DECODERS, decode_text, key_value_decoder

    if topic is None and paths:
        topic = paths[0].absolute().parent.name.rpartition("-")[0]
    return TOPIC_DECODERS.get(topic or "", key_value_decoder(decode_text, decode_text))
