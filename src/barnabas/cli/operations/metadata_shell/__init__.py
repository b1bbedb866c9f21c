"""A snapshot or a segment of cluster metadata, to be walked through like a file system."""

from barnabas.cli.operations.metadata_shell.commands import COMMANDS, MetadataShell
from barnabas.cli.operations.metadata_shell.tree import load_image

__all__ = ["COMMANDS", "MetadataShell", "load_image"]
