"""`meta.properties`: which cluster and node a log directory belongs to, and its own id."""

from dataclasses import dataclass

from barnabas.log.checkpoint_file import replace_file
from barnabas.wire import uuid

FILE_NAME = "meta.properties"
_VERSION = "1"


class NotFormatted(Exception):  # noqa: N818 - the domain's word for it
    """The directory has no valid `meta.properties`."""


@dataclass(slots=True, frozen=True)
class MetaProperties:
    """What `storage format` writes once."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def write(directory: str, meta: MetaProperties) -> None:
    lines = (
        f"version={_VERSION}",
        f"cluster.id={meta.cluster_id}",
        f"node.id={meta.node_id}",
        f"directory.id={uuid.to_text(meta.directory_id)}",
        "",
    )
    replace_file(f"{directory}/{FILE_NAME}", "\n".join(lines).encode())


def read(directory: str) -> MetaProperties:
    path = f"{directory}/{FILE_NAME}"
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        raise NotFormatted(f"{path} is missing; run `barnabas storage format` first") from None
    except UnicodeDecodeError:
        raise NotFormatted(f"{path} is not text; restore it from a copy") from None
    fields = dict(line.split("=", 1) for line in lines if "=" in line and line[0] not in "#!")
    if fields.get("version") != _VERSION:
        raise NotFormatted(f"{path} has version {fields.get('version')}, only 1 is supported")
    try:
        return MetaProperties(
            cluster_id=fields["cluster.id"],
            node_id=int(fields["node.id"]),
            directory_id=uuid.from_text(fields["directory.id"]),
        )
    except (KeyError, ValueError) as error:
        raise NotFormatted(f"{path} is not complete: {error}") from None
