"""Formatting and inspecting the log directories of a node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.scram_users import parse_scram_users
from barnabas.cli.operations.settings import load_settings
from barnabas.node.format import (
    QuorumBootstrap,
    StorageInfo,
    format_storage,
    inspect_storage,
    parse_initial_voters,
)
from barnabas.raft import VoterSet


@dataclass(slots=True, frozen=True)
class FormatOptions:
    """Options of formatting; at most one of the three about the quorum is set."""

    cluster_id: str
    ignore_formatted: bool = False
    release: str | None = None
    features: Mapping[str, int] | None = None
    standalone: bool = False
    no_initial_controllers: bool = False
    initial_controllers: str | None = None
    scram_users: Sequence[str] = ()
    """The values of --add-scram."""


def format_node(file: Path, formatting: FormatOptions) -> list[str]:
    """Formats the directories; returns the lines that kafka-storage prints."""
    settings = load_settings(file, {})
    quorum: QuorumBootstrap | VoterSet = QuorumBootstrap.FROM_SETTINGS
    if formatting.standalone:
        quorum = QuorumBootstrap.STANDALONE
    elif formatting.no_initial_controllers:
        quorum = QuorumBootstrap.JOIN
    elif formatting.initial_controllers is not None:
        listener = settings["controller.listener.names"][0]
        quorum = parse_initial_voters(formatting.initial_controllers, listener)
    formatted = format_storage(
        settings,
        cluster_id=formatting.cluster_id,
        quorum=quorum,
        release=formatting.release,
        features=formatting.features,
        ignore_formatted=formatting.ignore_formatted,
        scram_users=parse_scram_users(formatting.scram_users),
    )
    if not formatted.directories:
        return ["All of the log directories are already formatted."]
    is_voter = formatting.standalone or formatting.initial_controllers is not None
    kinds = {settings.metadata_log_dir: "dynamic metadata voter" if is_voter else "metadata"}
    return [
        f"Formatting {kinds.get(directory, 'data')} directory {directory} "
        f"with metadata.version {formatted.release}."
        for directory in formatted.directories
    ]


def inspect_node_storage(file: Path) -> StorageInfo:
    return inspect_storage(load_settings(file, {}))


def format_inspection(inspected: StorageInfo) -> str:
    """Returns the text that kafka-storage prints."""
    lines = []
    if directories := inspected.directories:
        lines.append(f"Found log {'directory' if len(directories) == 1 else 'directories'}:")
        lines += [f"  {directory}" for directory in directories] + [""]
    if inspected.metadata:
        pairs = ", ".join(f"{key}={value}" for key, value in sorted(inspected.metadata.items()))
        lines += [f"Found metadata: {{{pairs}}}", ""]
    if problems := inspected.problems:
        lines.append(f"Found problem{'' if len(problems) == 1 else 's'}:")
        lines += [f"  {problem}" for problem in problems] + [""]
    return "\n".join(lines)
