"""Preparing log directories for a node's first start, and looking at what they are."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from barnabas.config import BrokerSettings, Listener
from barnabas.config.addresses import parse_voter
from barnabas.log import LogDirectory, MetaProperties, NotFormatted, meta_properties
from barnabas.metadata.features import (
    KRAFT_VERSION,
    LATEST_METADATA_LEVEL,
    METADATA_VERSION,
    SUPPORTED,
    default_levels,
    metadata_level,
    release_name,
    unmet_dependencies,
)
from barnabas.metadata.frames import encode_record
from barnabas.node.errors import NodeError
from barnabas.raft import Endpoint, Voter, Voters, format_metadata
from barnabas.wire.messages.metadata_records import FeatureLevelRecord
from barnabas.wire.uuid import from_text, random_uuid, to_text

_MAY_BE_THERE = {"lost+found", "bootstrap.checkpoint", "__cluster_metadata-0"}


class FormatError(NodeError):
    """The directories cannot be formatted as asked."""


@dataclass(slots=True, frozen=True)
class Formatted:
    """What a format did; no directories if all were formatted before."""

    directories: list[str]
    release: str
    """The name of the metadata.version."""


@dataclass(slots=True, frozen=True)
class Inspected:
    """What the log directories of a node say of themselves."""

    directories: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Beginning(Enum):
    """How a node that is formatted finds its quorum, unless it is given the first voters."""

    ALONE = auto()  # it is the only voter, for now
    JOINING = auto()  # the quorum is there, or others begin it
    SETTING = auto()  # as controller.quorum.voters says; a broker asks the bootstrap servers


def format_storage(
    settings: BrokerSettings,
    *,
    cluster_id: str,
    quorum: Beginning | Voters = Beginning.ALONE,
    release: str | None = None,
    features: Mapping[str, int] | None = None,
    ignore_formatted: bool = False,
) -> Formatted:
    """Write `meta.properties` and what the metadata log begins with."""
    levels = _levels(release, features or {})
    _check_quorum(settings, quorum)
    unformatted = _unformatted(settings, cluster_id, ignore_formatted)
    for directory in unformatted:
        directory_id = random_uuid()
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
            if directory == settings.metadata_log_dir:
                voters = _first_voters(settings, quorum, directory_id)
                own = voters.get(settings.node_id) if voters is not None else None
                directory_id = own.directory_id if own is not None else directory_id
                format_metadata(directory, _bootstrap(levels), voters, time.time_ns() // 1_000_000)
            # Last, for this is what says that the directory is formatted.
            LogDirectory.format(directory, cluster_id, settings.node_id, directory_id)
        except OSError as error:
            raise FormatError(f"{directory} cannot be formatted: {error.strerror}.") from error
    return Formatted(unformatted, release_name(levels[METADATA_VERSION]))


def parse_first_voters(text: str, listener: str) -> Voters:
    """`id@host:port:directory-id`, separated by commas, as the voters a quorum begins with."""
    voters: dict[int, Voter] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        address, _, directory = entry.rpartition(":")
        try:
            node_id, (host, port) = parse_voter(address)
            directory_id = from_text(directory)
        except ValueError:
            raise FormatError(
                f"{entry} is not id@host:port:directory-id; `barnabas storage random-uuid` makes "
                "directory ids."
            ) from None
        if node_id in voters:
            raise FormatError(f"Node {node_id} is named twice among the first voters.")
        voters[node_id] = Voter(node_id, directory_id, (Endpoint(listener, host, port),))
    if not voters:
        raise FormatError("No first voters are named: id@host:port:directory-id, and commas.")
    return Voters(voters.values())


def format_new_directories(settings: BrokerSettings) -> None:
    """Format what is empty, as a new node or as further directories of the one that is there."""
    directories = _directories(settings)
    formatted = [each for each in directories if _is_formatted(each)]
    if len(formatted) == len(directories):
        return
    for directory in directories:
        if directory not in formatted:
            _require_empty(directory)
    if not formatted:
        cluster_id = to_text(random_uuid())
    elif settings.metadata_log_dir in formatted:
        cluster_id = _read_meta(settings.metadata_log_dir).cluster_id
    else:
        raise FormatError(
            f"{formatted[0]} is a node's, but {settings.metadata_log_dir} has no metadata log: "
            "name the directory that has it first in log.dirs."
        )
    quorum = Beginning.SETTING if settings.voters else Beginning.ALONE
    format_storage(settings, cluster_id=cluster_id, quorum=quorum, ignore_formatted=True)


def own_voter(node_id: int, listeners: Sequence[Listener], directory_id: bytes) -> Voter:
    """This node as a voter of the quorum."""
    return Voter(
        node_id,
        directory_id,
        tuple(
            Endpoint(listener.name, listener.host or "localhost", listener.port)
            for listener in listeners
        ),
    )


def inspect_storage(settings: BrokerSettings) -> Inspected:
    """What `storage info` shows."""
    found = Inspected()
    owners: set[str] = set()
    for directory in _directories(settings):
        if not Path(directory).is_dir():
            why = "is not a directory" if Path(directory).exists() else "does not exist"
            found.problems.append(f"{directory} {why}")
            continue
        found.directories.append(directory)
        try:
            meta = _read_meta(directory)
        except FormatError as error:
            found.problems.append(str(error))
            continue
        owners.add(f"node {meta.node_id} of cluster {meta.cluster_id}")
        found.metadata.update(
            {
                "cluster.id": meta.cluster_id,
                "directory.id": to_text(meta.directory_id),
                "node.id": str(meta.node_id),
                "version": "1",
            }
        )
    if len(owners) > 1:
        found.problems.append(f"The directories belong to {' and '.join(sorted(owners))}")
    return found


def _directories(settings: BrokerSettings) -> list[str]:
    """The directories with partitions, and that of the metadata log where it stands apart."""
    return list(dict.fromkeys((*settings.log_dirs, settings.metadata_log_dir)))


def _is_formatted(directory: str) -> bool:
    return Path(directory, meta_properties.FILE_NAME).exists()


def _read_meta(directory: str) -> MetaProperties:
    try:
        return meta_properties.read(directory)
    except NotFormatted as error:
        raise FormatError(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{directory}/{meta_properties.FILE_NAME}: {error}") from None


def _require_empty(directory: str) -> None:
    """Nobody else's files get a broker among them; a format that was cut short may go on."""
    try:
        names = {entry.name for entry in Path(directory).iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        raise FormatError(f"{directory} cannot be used: {error.strerror}.") from None
    if any(not name.startswith(".") for name in names - _MAY_BE_THERE):
        raise FormatError(
            f"{directory} has files in it, but no {meta_properties.FILE_NAME}: choose an empty "
            "directory, or make this one a node's with `barnabas storage format`."
        )


def _levels(release: str | None, features: Mapping[str, int]) -> dict[str, int]:
    """The level of every feature: the release's, unless asked for otherwise."""
    try:
        levels = default_levels(metadata_level(release) if release else LATEST_METADATA_LEVEL)
    except ValueError as error:
        raise FormatError(str(error)) from None
    levels.update(features)
    for name, level in levels.items():
        if name not in SUPPORTED:
            raise FormatError(f"Feature {name} is not known; there are {', '.join(SUPPORTED)}.")
        if level not in SUPPORTED[name]:
            bounds = f"{SUPPORTED[name].min} to {SUPPORTED[name].max}"
            raise FormatError(f"Feature {name} can have the levels {bounds}, not {level}.")
        for needed, least in unmet_dependencies(name, level, levels).items():
            raise FormatError(f"{name}={level} needs {needed} to be at least {least}.")
    return levels


def _bootstrap(levels: Mapping[str, int]) -> list[bytes]:
    """The records a new cluster begins with: metadata.version, then the others by name.

    The kraft version is the quorum's own and is kept in its control records.
    """
    names = sorted(name for name, level in levels.items() if level and name != KRAFT_VERSION)
    names.sort(key=METADATA_VERSION.__ne__)
    return [
        encode_record(FeatureLevelRecord(name=name, feature_level=levels[name]), 0)
        for name in names
    ]


def _unformatted(settings: BrokerSettings, cluster_id: str, ignore_formatted: bool) -> list[str]:
    """The directories to format; those that are formatted must belong to the same cluster."""
    unformatted = []
    for directory in _directories(settings):
        if not _is_formatted(directory):
            unformatted.append(directory)
            continue
        if not ignore_formatted:
            raise FormatError(
                f"Log directory {directory} is already formatted. Use --ignore-formatted to "
                "leave it alone and format the others."
            )
        meta = _read_meta(directory)
        if meta.cluster_id != cluster_id or meta.node_id != settings.node_id:
            raise FormatError(
                f"Log directory {directory} belongs to node {meta.node_id} of cluster "
                f"{meta.cluster_id}, not to node {settings.node_id} of {cluster_id}."
            )
    return unformatted


def _check_quorum(settings: BrokerSettings, quorum: Beginning | Voters) -> None:
    if quorum is Beginning.SETTING:
        if settings.is_controller and not settings.voters:
            raise FormatError(
                "controller.quorum.voters is not set on this controller: format it with "
                "--standalone, --initial-controllers or --no-initial-controllers."
            )
        return
    if settings.voters:
        raise FormatError(
            "controller.quorum.voters is set: take it out of the settings, or format without "
            "--standalone, --initial-controllers and --no-initial-controllers."
        )
    if quorum is Beginning.ALONE and not settings.is_controller:
        raise FormatError("A node begins a quorum alone only if controller is in process.roles.")
    is_named = isinstance(quorum, Voters) and quorum.get(settings.node_id) is not None
    if isinstance(quorum, Voters) and is_named != settings.is_controller:
        raise FormatError(
            f"Node {settings.node_id} is {'not ' if not settings.is_controller else ''}a "
            f"controller by process.roles; the first voters are {quorum.ids()}."
        )


def _first_voters(
    settings: BrokerSettings, quorum: Beginning | Voters, directory_id: bytes
) -> Voters | None:
    match quorum:
        case Voters():
            return quorum
        case Beginning.ALONE:
            return Voters(
                [own_voter(settings.node_id, settings.controller_listeners, directory_id)]
            )
    return None
