"""The metadata shell: a snapshot or segment of cluster metadata as a tree of directories."""

from barnabas.cli.operations.metadata_shell.commands import COMMANDS, MetadataShell
from barnabas.cli.operations.metadata_shell.tree import load_image

__all__ = ["COMMANDS", "MetadataShell", "load_image"]
