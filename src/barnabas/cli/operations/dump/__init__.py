"""The files of a partition in words: segments, indexes, snapshots, as kafka-dump-log has them."""

from barnabas.cli.operations.dump.files import Dump, dump

__all__ = ["Dump", "dump"]
