"""Formats the log directories of a node, and inspects them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from barnabas.config import BrokerSettings, Listener
from barnabas.config.addresses import ALL_INTERFACES, parse_voter
from barnabas.log import LogDirectory, MetaProperties, NotFormatted
from barnabas.log.directory.directory_files import META_PROPERTIES, read_meta_properties
from barnabas.metadata.features import (
    KRAFT_VERSION,
    LATEST_METADATA_LEVEL,
    METADATA_VERSION,
    SCRAM_FROM,
    SUPPORTED,
    default_levels,
    metadata_level,
    release_name,
    unmet_dependencies,
)
from barnabas.metadata.frames import encode_record
from barnabas.node.errors import NodeError
from barnabas.raft import VoterEndpoint, VoterNode, VoterSet, format_metadata
from barnabas.wire.messages.metadata_records import FeatureLevelRecord
from barnabas.wire.schema import Message
from barnabas.wire.uuid import from_text, random_uuid, to_text

_IGNORED_FILES = {"lost+found", "bootstrap.checkpoint", "__cluster_metadata-0"}


class FormatError(NodeError):
    """The directories cannot be formatted as requested."""


@dataclass(slots=True, frozen=True)
class FormatResult:
    """The directories that were formatted; none if all were formatted before."""

    directories: list[str]
    release: str
    """The name of the metadata.version."""


@dataclass(slots=True, frozen=True)
class StorageInfo:
    """The contents of meta.properties in the log directories of a node."""

    directories: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class QuorumBootstrap(Enum):
    """How a formatted node finds its quorum, unless the initial voters are given."""

    STANDALONE = auto()  # it is the only voter at first
    JOIN = auto()  # the quorum exists, or other nodes start it
    FROM_SETTINGS = auto()  # from controller.quorum.voters; a broker uses the bootstrap servers


def format_storage(
    settings: BrokerSettings,
    *,
    cluster_id: str,
    quorum: QuorumBootstrap | VoterSet = QuorumBootstrap.STANDALONE,
    release: str | None = None,
    features: Mapping[str, int] | None = None,
    ignore_formatted: bool = False,
    scram_users: Sequence[Message] = (),
) -> FormatResult:
    """Writes `meta.properties` and the first records of the metadata log.

    `scram_users` are the records of users that exist from the start.
    """
    levels = _levels(release, features or {})
    if scram_users and levels[METADATA_VERSION] < SCRAM_FROM:
        raise FormatError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
    _check_quorum(settings, quorum)
    unformatted = _unformatted(settings, cluster_id, ignore_formatted)
    for directory in unformatted:
        directory_id = random_uuid()
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
            if directory == settings.metadata_log_dir:
                voters = _initial_voters(settings, quorum, directory_id)
                own = voters.get(settings.node_id) if voters is not None else None
                directory_id = own.directory_id if own is not None else directory_id
                bootstrap = [*_bootstrap(levels), *(encode_record(user, 0) for user in scram_users)]
                format_metadata(directory, bootstrap, voters, time.time_ns() // 1_000_000)
            # Last, because meta.properties marks the directory as formatted.
            LogDirectory.format(directory, cluster_id, settings.node_id, directory_id)
        except OSError as error:
            raise FormatError(f"{directory} cannot be formatted: {error.strerror}.") from error
    return FormatResult(unformatted, release_name(levels[METADATA_VERSION]))


def parse_initial_voters(text: str, listener: str) -> VoterSet:
    """Parses `id@host:port:directory-id`, separated by commas, as the initial voters."""
    voters: dict[int, VoterNode] = {}
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
            raise FormatError(f"Node {node_id} is named twice among the initial voters.")
        voters[node_id] = VoterNode(node_id, directory_id, (VoterEndpoint(listener, host, port),))
    if not voters:
        raise FormatError(
            "There are no initial voters: give id@host:port:directory-id, separated by commas."
        )
    return VoterSet(voters.values())


def format_new_directories(settings: BrokerSettings, scram_users: Sequence[Message] = ()) -> None:
    """Formats empty directories, for a new node or as further directories of an existing one.

    `scram_users` are the records of users that a new node has from the start.
    """
    directories = _directories(settings)
    formatted = [directory for directory in directories if _is_formatted(directory)]
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
    quorum = QuorumBootstrap.FROM_SETTINGS if settings.voters else QuorumBootstrap.STANDALONE
    format_storage(
        settings,
        cluster_id=cluster_id,
        quorum=quorum,
        ignore_formatted=True,
        scram_users=scram_users,
    )


def own_voter(node_id: int, listeners: Sequence[Listener], directory_id: bytes) -> VoterNode:
    """This node as a voter of the quorum."""
    return VoterNode(
        node_id,
        directory_id,
        tuple(
            VoterEndpoint(listener.name, listener.host or "localhost", listener.port)
            for listener in listeners
        ),
    )


def inspect_storage(settings: BrokerSettings) -> StorageInfo:
    """Returns what `storage info` shows."""
    info = StorageInfo()
    owners: set[str] = set()
    for directory in _directories(settings):
        if not Path(directory).is_dir():
            reason = "is not a directory" if Path(directory).exists() else "does not exist"
            info.problems.append(f"{directory} {reason}")
            continue
        info.directories.append(directory)
        try:
            meta = _read_meta(directory)
        except FormatError as error:
            info.problems.append(str(error))
            continue
        owners.add(f"node {meta.node_id} of cluster {meta.cluster_id}")
        info.metadata.update(
            {
                "cluster.id": meta.cluster_id,
                "directory.id": to_text(meta.directory_id),
                "node.id": str(meta.node_id),
                "version": "1",
            }
        )
    if len(owners) > 1:
        info.problems.append(f"The directories belong to {' and '.join(sorted(owners))}")
    return info


def _directories(settings: BrokerSettings) -> list[str]:
    """Returns log.dirs, and metadata.log.dir if it is another directory."""
    return list(dict.fromkeys((*settings.log_dirs, settings.metadata_log_dir)))


def _is_formatted(directory: str) -> bool:
    return Path(directory, META_PROPERTIES).exists()


def _read_meta(directory: str) -> MetaProperties:
    try:
        return read_meta_properties(directory)
    except NotFormatted as error:
        raise FormatError(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{directory}/{META_PROPERTIES}: {error}") from None


def _require_empty(directory: str) -> None:
    """Raises FormatError if there are other files; an interrupted format may continue."""
    try:
        names = {entry.name for entry in Path(directory).iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        raise FormatError(f"{directory} cannot be used: {error.strerror}.") from None
    if any(not name.startswith(".") for name in names - _IGNORED_FILES):
        raise FormatError(
            f"{directory} has files in it, but no {META_PROPERTIES}: choose an empty "
            "directory, or format this one with `barnabas storage format`."
        )


def _levels(release: str | None, features: Mapping[str, int]) -> dict[str, int]:
    """Returns the level of every feature: the release's, unless one is given."""
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
    """Returns the first records of a cluster: metadata.version, then the others by name.

    kraft.version is not among them: it is in the quorum's control records.
    """
    names = sorted(name for name, level in levels.items() if level and name != KRAFT_VERSION)
    names.sort(key=METADATA_VERSION.__ne__)
    return [
        encode_record(FeatureLevelRecord(name=name, feature_level=levels[name]), 0)
        for name in names
    ]


def _unformatted(settings: BrokerSettings, cluster_id: str, ignore_formatted: bool) -> list[str]:
    """Returns the directories to format; formatted ones must belong to the same cluster."""
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


def _check_quorum(settings: BrokerSettings, quorum: QuorumBootstrap | VoterSet) -> None:
    if quorum is QuorumBootstrap.FROM_SETTINGS:
        if settings.is_controller and not settings.voters:
            raise FormatError(
                "controller.quorum.voters is not set on this controller: format it with "
                "--standalone, --initial-controllers or --no-initial-controllers."
            )
        return
    if settings.voters:
        raise FormatError(
            "controller.quorum.voters is set: remove it from the settings, or format without "
            "--standalone, --initial-controllers and --no-initial-controllers."
        )
    if quorum is QuorumBootstrap.STANDALONE and not settings.is_controller:
        raise FormatError("A standalone quorum needs controller in process.roles.")
    is_named = isinstance(quorum, VoterSet) and quorum.get(settings.node_id) is not None
    if isinstance(quorum, VoterSet) and is_named != settings.is_controller:
        raise FormatError(
            f"Node {settings.node_id} is {'not ' if not settings.is_controller else ''}a "
            f"controller by process.roles; the initial voters are {quorum.ids()}."
        )


def _initial_voters(
    settings: BrokerSettings, quorum: QuorumBootstrap | VoterSet, directory_id: bytes
) -> VoterSet | None:
    match quorum:
        case VoterSet():
            return quorum
        case QuorumBootstrap.STANDALONE:
            return VoterSet(
                [own_voter(settings.node_id, settings.controller_listeners, directory_id)]
            )
    return None


def single_node_properties(
    host: str, port: int, directory: Path, controller_port: int | None = None
) -> dict[str, str]:
    """Returns the properties of a node that is broker and only controller, with one replica.

    The port of the controller is the next one, unless it is given.
    """
    if controller_port is None:
        controller_port = port + 1 if port else 0
    local_host = host_for_local_nodes(host)
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{local_host}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{local_host}:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(directory),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def host_for_local_nodes(host: str) -> str:
    """Returns where nodes on one machine reach each other if clients are served on `host`."""
    return "localhost" if host.strip("[]") in ALL_INTERFACES else host
