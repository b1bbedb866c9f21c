"""A snapshot or a segment of cluster metadata, to be walked through like a file system."""

from barnabas.cli.operations.metadata_shell.commands import COMMANDS, Shell
from barnabas.cli.operations.metadata_shell.tree import read_image

__all__ = ["COMMANDS", "Shell", "read_image"]
