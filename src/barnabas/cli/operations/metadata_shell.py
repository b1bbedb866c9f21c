"""The metadata shell: cluster metadata as a tree of directories, and the commands on it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import __version__
from barnabas.cli.operations.dump.records import read_batches
from barnabas.cli.operations.errors import CommandError, UnreadableFileError
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import METADATA_RELEASES, METADATA_VERSION
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import MetadataImage, MetadataLoader
from barnabas.metadata.states import (
    BrokerRegistration,
    ControllerRegistration,
    FeatureLevelRange,
    ListenerEndpoint,
    PartitionRegistration,
    RecoveryState,
)
from barnabas.wire.errors import KafkaError, ProtocolViolation
from barnabas.wire.records.batch import crc_is_valid
from barnabas.wire.records.read import read_records
from barnabas.wire.uuid import to_text

Directory = dict[str, Any]
"""Directories and files by name; a file is the text it contains."""

Node = Directory | str

_RESOURCES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
_SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class LoadedImage(NamedTuple):
    image: MetadataImage
    timestamp_ms: int
    """The timestamp of the last batch."""


def load_image(path: Path) -> LoadedImage:
    """Returns the image at the end of a .checkpoint or .log file of __cluster_metadata."""
    loader, last_ms = MetadataLoader(MetadataImage()), 0
    try:
        for _, header, content in read_batches(path, path.stat().st_size):
            if not crc_is_valid(content, 0, header):
                raise CommandError(
                    f"{path} is damaged: the batch at offset {header.base_offset} has a wrong CRC"
                )
            last_ms = header.max_timestamp
            records = [] if header.is_control else read_records(content)
            decoded = [decode_record(record.value or b"") for record in records]
            loader.load(decoded, header.last_offset, header.leader_epoch, MetadataDelta())
    except (KafkaError, ProtocolViolation) as malformed:
        raise CommandError(f"{path} is not cluster metadata: {malformed}") from None
    except OSError as error:
        raise UnreadableFileError(path, error) from None
    return LoadedImage(loader.image, last_ms)


def image_tree(loaded: LoadedImage) -> Directory:
    image = loaded.image
    return {
        "image": {
            "acls": {"byId": {to_text(key): str(acl) for key, acl in image.acls.items()}},
            "clientQuotas": {str(entity): dict(quotas) for entity, quotas in image.quotas.items()},
            "cluster": {
                "brokers": {str(key): _broker(broker) for key, broker in image.brokers.items()},
                "controllers": {
                    str(key): _controller(controller)
                    for key, controller in image.controllers.items()
                },
            },
            "configs": {
                _resource(*resource): dict(settings) for resource, settings in image.configs.items()
            },
            "delegationToken": {key: str(token) for key, token in image.tokens.items()},
            "features": _features(image),
            "producerIds": {"nextProducerId": str(image.next_producer_id)},
            "provenance": _provenance(loaded),
            "scram": {
                name: {
                    user: f"iterations={credential.iterations}, salt=[hidden], keys=[hidden]"
                    for (user, of), credential in image.scram.items()
                    if of == mechanism
                }
                for mechanism, name in _SCRAM_MECHANISMS.items()
            },
            "topics": _topics(image),
        },
        "local": {"commitId": "unknown", "version": __version__},
    }


def _topics(image: MetadataImage) -> Directory:
    by_id: Directory = {}
    by_name: Directory = {}
    for topic in image.topics:
        partitions = {
            str(key): _partition(partition) for key, partition in topic.partitions.items()
        }
        directory = {**partitions, "id": to_text(topic.topic_id), "name": topic.name}
        by_id[to_text(topic.topic_id)] = by_name[topic.name] = directory
    return {"byId": by_id, "byName": by_name}


def _features(image: MetadataImage) -> Directory:
    level = image.features.get(METADATA_VERSION)
    release = f"Optional[{METADATA_RELEASES.get(level, level)}]" if level else "Optional.empty"
    others = {
        f"finalized_{name}": str(level)
        for name, level in image.features.items()
        if name != METADATA_VERSION
    }
    return {**others, "metadataVersion": release}


def _provenance(loaded: LoadedImage) -> str:
    when = datetime.fromtimestamp(loaded.timestamp_ms / 1000, UTC)
    stamp = when.isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"offset {loaded.image.offset}, epoch {loaded.image.epoch}, time {stamp}Z[UTC]"


def _resource(kind: int, name: str) -> str:
    return f"{_RESOURCES.get(kind, kind)}:{name}" if name else str(_RESOURCES.get(kind, kind))


def _broker(broker: BrokerRegistration) -> str:
    rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
    return (
        f"BrokerRegistration(id={broker.broker_id}, epoch={broker.epoch},"
        f" incarnationId={to_text(broker.incarnation_id)},"
        f" listeners={_endpoints(broker.endpoints)},"
        f" supportedFeatures={_levels(broker.features)}, rack={rack},"
        f" fenced={_boolean(broker.fenced)},"
        f" inControlledShutdown={_boolean(broker.in_controlled_shutdown)},"
        f" isMigratingZkBroker=false, directories={_ids(broker.log_dirs)},"
        f" cordonedDirectories={_ids(broker.cordoned_log_dirs or ())})"
    )


def _controller(controller: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={controller.controller_id},"
        f" incarnationId={to_text(controller.incarnation_id)}, zkMigrationReady=false,"
        f" listeners={_endpoints(controller.endpoints)},"
        f" supportedFeatures={_levels(controller.features)})"
    )


def _partition(partition: PartitionRegistration) -> str:
    return (
        f"PartitionRegistration(replicas={_numbers(partition.replicas)},"
        f" directories={_ids(partition.directories)}, isr={_numbers(partition.isr)},"
        f" removingReplicas={_numbers(partition.removing)},"
        f" addingReplicas={_numbers(partition.adding)}, elr={_numbers(partition.elr)},"
        f" lastKnownElr={_numbers(partition.last_known_elr)}, leader={partition.leader},"
        f" leaderRecoveryState={RecoveryState(partition.recovery_state).name},"
        f" leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
    )


def _endpoints(endpoints: Iterable[ListenerEndpoint]) -> str:
    texts = (
        f"Endpoint(listenerName='{endpoint.name}',"
        f" securityProtocol={_PROTOCOLS[endpoint.security_protocol]},"
        f" host='{endpoint.host}', port={endpoint.port})"
        for endpoint in sorted(endpoints, key=lambda endpoint: endpoint.name)
    )
    return f"[{', '.join(texts)}]"


def _levels(features: Mapping[str, FeatureLevelRange]) -> str:
    texts = (f"{name}: {levels.min}-{levels.max}" for name, levels in sorted(features.items()))
    return f"{{{', '.join(texts)}}}"


def _ids(ids: Iterable[bytes]) -> str:
    return f"[{', '.join(map(to_text, ids))}]"


def _numbers(numbers: Iterable[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


class MetadataShell:
    """A working directory in the tree, and the history of commands."""

    def __init__(self, root: Directory) -> None:
        self._root = root
        self.working_directory: tuple[str, ...] = ()
        self.history: list[str] = []

    def run(self, words: Sequence[str]) -> Iterator[str]:
        """Yields the output of a command."""
        if not words:
            return
        name, *arguments = words
        command = COMMANDS.get(name)
        if command is None:
            yield f"{name}: unknown command; use one of {', '.join(COMMANDS)} and exit."
        else:
            yield from command[0](self, arguments)

    def complete(self, path: str) -> list[str]:
        """Returns the completions of a path."""
        directory, slash, prefix = path.rpartition("/")
        entries = self._at(self._parts(directory + slash))
        if not isinstance(entries, dict):
            return []
        return [directory + slash + name for name in sorted(entries) if name.startswith(prefix)]

    def ls(self, arguments: Sequence[str]) -> Iterator[str]:
        targets = list(self._resolve(arguments or ["."]))
        for name, problem, node in targets:
            if problem:
                yield f"ls: {problem}: no such file or directory."
            elif isinstance(node, str):
                yield name
        directories = [(name, node) for name, _, node in targets if isinstance(node, dict)]
        for index, (name, node) in enumerate(directories):
            if len(targets) > 1:
                yield f"{name}:"
            yield from sorted(node)
            if index < len(directories) - 1:
                yield ""

    def cat(self, arguments: Sequence[str]) -> Iterator[str]:
        for _, problem, node in self._resolve(arguments):
            if problem:
                yield f"cat: {problem}: No such file or directory."
            elif isinstance(node, dict):
                yield f"cat: {' '.join(arguments)}: Is a directory"
            else:
                yield str(node)

    def find(self, arguments: Sequence[str]) -> Iterator[str]:
        for path in arguments or ["."]:
            for _, problem, node in self._resolve([path]):
                if node is None:
                    yield f"find: {problem}: no such file or directory."
                else:
                    yield from _paths(path.rstrip("/") or "/", node)

    def tree(self, arguments: Sequence[str]) -> Iterator[str]:
        for _, problem, node in self._resolve(arguments or ["."]):
            if node is None:
                yield f"tree: {problem}: No such file or directory."
            else:
                yield from _tree(node, "")

    def cd(self, arguments: Sequence[str]) -> Iterator[str]:
        for _, problem, node in self._resolve(list(arguments[:1]) or ["/"]):
            if problem:
                yield f"cd: {problem}: no such file or directory."
            elif not isinstance(node, dict):
                yield f"cd: {arguments[0]}: not a directory."
            else:
                self.working_directory = self._parts(arguments[0] if arguments else "/")

    def pwd(self, _arguments: Sequence[str]) -> Iterator[str]:
        yield "/" + "/".join(self.working_directory)

    def print_history(self, _arguments: Sequence[str]) -> Iterator[str]:
        for number, line in enumerate(self.history):
            yield f"{number:5}  {line}"

    def help(self, _arguments: Sequence[str]) -> Iterator[str]:
        yield "Welcome to the metadata shell. You can:"
        for name, (_, description) in COMMANDS.items():
            yield f"  {name:8} {description}"
        yield "  exit     exit the shell."

    def _resolve(self, paths: Sequence[str]) -> Iterator[tuple[str, str, Node | None]]:
        """Yields name, path without a match, and node of each match of the patterns."""
        for path in paths:
            matches = list(self._matching(self._parts(path)))
            if not matches:
                yield "", path, None
            for parts, node in matches:
                yield parts[-1] if parts else "/", "", node

    def _matching(self, parts: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Node]]:
        matches: list[tuple[tuple[str, ...], Node]] = [((), self._root)]
        for part in parts:
            matches = [
                ((*before, name), node[name])
                for before, node in matches
                if isinstance(node, dict)
                for name in sorted(node)
                if name == part or fnmatchcase(name, part)
            ]
        return iter(matches)

    def _at(self, parts: Sequence[str]) -> Node | None:
        return next((node for _, node in self._matching(parts)), None)

    def _parts(self, path: str) -> tuple[str, ...]:
        """Returns the names from the root on, with `.` and `..` resolved."""
        parts = [] if path.startswith("/") else list(self.working_directory)
        for name in path.split("/"):
            if name == "..":
                parts = parts[:-1]
            elif name not in ("", "."):
                parts.append(name)
        return tuple(parts)


def _paths(path: str, node: Node) -> Iterator[str]:
    yield path
    if isinstance(node, dict):
        for name in sorted(node):
            yield from _paths(f"{path.rstrip('/')}/{name}", node[name])


def _tree(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, dict):
        for name in sorted(node):
            yield f"{indent}{name}:"
            yield from _tree(node[name], indent + "  ")
    else:
        yield f"{indent}{node}"


Command = Callable[[MetadataShell, Sequence[str]], Iterator[str]]

COMMANDS: dict[str, tuple[Command, str]] = {
    "cat": (MetadataShell.cat, "print files."),
    "cd": (MetadataShell.cd, "change the working directory."),
    "find": (MetadataShell.find, "list a directory recursively."),
    "help": (MetadataShell.help, "print this help."),
    "history": (MetadataShell.print_history, "print the command history."),
    "ls": (MetadataShell.ls, "list a directory."),
    "pwd": (MetadataShell.pwd, "print the working directory."),
    "tree": (MetadataShell.tree, "print directories and files recursively."),
}
