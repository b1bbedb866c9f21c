"""The contents of partition files as text, as kafka-dump-log prints them."""

from barnabas.cli.operations.dump.files import DumpOptions, dump_files

__all__ = ["DumpOptions", "dump_files"]
