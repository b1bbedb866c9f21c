"""The files of a partition in words: segments, indexes, snapshots, as kafka-dump-log has them."""

from barnabas.cli.operations.dump.files import DumpOptions, dump_files

__all__ = ["DumpOptions", "dump_files"]
