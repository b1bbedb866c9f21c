"""Reads `tests/facts/*.txt`: what Kafka's published artifacts say about every message.

A message is a header line, its fields are the lines below it, indented by nesting. A `struct`
line opens a definition that fields of its message refer to by name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FACTS = Path(__file__).parents[1] / "facts"


UNQUOTED_NULLS = {
    ("ConsumerGroupMemberMetadataValue", "ClassicMemberMetadata"),
    ("ConsumerGroupCurrentMemberAssignmentValue", "AssignmentEpochs"),
    ("StreamsGroupCurrentMemberAssignmentValue", "AssignmentEpochs"),
    ("StreamsGroupMetadataValue", "LastAssignmentConfigs"),
}
"""Fields whose default Kafka's sources give as JSON's null instead of the text "null".

Its generator takes that for no default, so its classes begin with an empty list or a struct.
"""


@dataclass(slots=True)
class FactField:
    name: str
    type: str
    versions: str
    nullable: str = ""
    tag: int | None = None
    default: str | None = None
    ignorable: bool = False


@dataclass(slots=True)
class FactMessage:
    kind: str
    name: str
    versions: str
    flexible: str
    key: int | None = None
    latest_unstable: bool = False
    listeners: tuple[str, ...] = ()
    fields: list[FactField] = field(default_factory=list)
    structs: dict[str, list[FactField]] = field(default_factory=dict)


def messages(file_name: str) -> list[FactMessage]:
    """Returns every message of a facts file that has a version."""
    blocks = (FACTS / file_name).read_text().strip().split("\n\n")
    parsed = [_message(block.splitlines()) for block in blocks]
    return [message for message in parsed if message.versions != "none"]


def error_codes() -> Iterator[tuple[int, str, bool]]:
    """Yields code, name, and whether the error is retriable."""
    for line in (FACTS / "errors.txt").read_text().splitlines():
        code, name, *flags = line.split()
        yield int(code), name, "retriable" in flags


def _message(lines: list[str]) -> FactMessage:
    kind, name, *words = lines[0].split()
    settings = dict(word.split("=") for word in words if "=" in word)
    message = FactMessage(
        kind=kind,
        name=name,
        versions=settings["versions"],
        flexible=settings["flexible"],
        key=int(settings["key"]) if "key" in settings else None,
        latest_unstable="latest-unstable" in words,
        listeners=tuple(settings["listeners"].split(",")) if "listeners" in settings else (),
    )
    open_structs = [message.fields]
    for line in lines[1:]:
        depth = (len(line) - len(line.lstrip())) // 2
        del open_structs[depth:]
        words = line.split()
        if words[0] == "struct":
            open_structs.append(message.structs.setdefault(words[1], []))
            continue
        declared = _field(words)
        if (name, declared.name) in UNQUOTED_NULLS:
            declared.default = None
        open_structs[-1].append(declared)
        struct = declared.type.removeprefix("[]")
        if struct[0].isupper():
            open_structs.append(message.structs.setdefault(struct, []))
    return message


def _field(words: list[str]) -> FactField:
    declared = FactField(name=words[0], type=words[1], versions="")
    for word in words[2:]:
        if word == "ignorable":
            declared.ignorable = True
        elif word.startswith("null:"):
            declared.nullable = word.removeprefix("null:")
        elif word.startswith("tag:"):
            tag, _, tagged_versions = word.removeprefix("tag:").partition("@")
            declared.tag = int(tag)
            declared.versions = declared.versions or tagged_versions
        elif word.startswith("="):
            declared.default = word.removeprefix("=").strip('"')
        elif word[0].isdigit():
            declared.versions = word
    return declared
