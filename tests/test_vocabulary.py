"""Names and texts use Kafka's vocabulary: private words do not come back (docs/glossary.md)."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("src", "tests", "bench", "examples")

PRIVATE_WORDS = {
    "told": "request, response, reported",
    "stirred": "dirty",
    "poke": "notify",
    "vigil": "liveness monitor",
    "caretaker": "host",
    "chronicle": "event log",
    "surroundings": "environment",
    "chores": "periodic tasks",
    "errand": "pending request",
    "courier": "request queue",
    "couriers": "request queues",
    "doomed": "pending delete",
    "bury": "on_leader_lost",
    "unheard": "default error log",
    "nonsense": "invalid response",
    "refusal": "error",
    "refusals": "errors",
    "whom": "the noun",
}
"""Words that are not part of identifiers, with what to use instead."""

PRIVATE_NAMES = {"place": "topic_partition, position", "places": "topic_partitions, positions"}
"""Words that are not identifiers by themselves: `place_replicas` is fine."""

PUBLIC_NAMES = {
    "AclOperation",
    "ClusterMetadata",
    "KafkaError",
    "Message",
    "Node",
    "ResourceType",
    "TransactionState",
    "Uuid",
    "VersionRange",
}
"""Names of confluent_kafka's surface, which the client must have."""

SHARED_CONCEPTS = {"TransactionMarker"}
"""Ports of two packages that do not import each other, for one object."""

IN_PROSE = re.compile(
    r"\b(told|poked?|stirred|vigil|caretaker|chores|errands?|couriers?|whoever|lest"
    r"|(?:that|records|which) counte?[ds]? (?:as|for) committed)\b",
    re.IGNORECASE,
)
"""Words that are not used in docstrings, comments and docs either."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def test_identifiers_have_no_private_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name} (use: {advice})"
        for path in _python_files()
        for line, name in _identifiers(path)
        if (advice := _advice(name)) is not None
    ]
    assert not found, "\n".join(found)


def test_prose_has_no_private_words() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*_python_files(), *_documents())
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if IN_PROSE.search(line)
    ]
    assert not found, "\n".join(found)


def test_class_names_are_unique_across_packages() -> None:
    """Structs of wire messages are named by Kafka's specification, so they may repeat."""
    classes: dict[str, list[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        if "messages" not in path.parts:
            for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
                classes.setdefault(name, []).append(str(path.relative_to(ROOT / "src")))
    allowed = PUBLIC_NAMES | SHARED_CONCEPTS
    repeated = {
        name: paths
        for name, paths in classes.items()
        if len(paths) > 1 and name not in allowed and not name.isupper()  # of templates
    }
    assert not repeated, "\n".join(
        f"{name}: {', '.join(paths)}" for name, paths in repeated.items()
    )


def _advice(name: str) -> str | None:
    """Returns what to use instead of a private word in an identifier, or None if it has none."""
    words = [word.lower() for word in _WORDS.findall(name)]
    for word in words:
        if word in PRIVATE_WORDS:
            return PRIVATE_WORDS[word]
    return PRIVATE_NAMES.get(name.strip("_").lower())


def _python_files() -> Iterator[Path]:
    for folder in SOURCES:
        yield from (path for path in (ROOT / folder).rglob("*.py") if path != Path(__file__))


def _documents() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield from (ROOT / "docs").glob("*.md")


def _identifiers(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string
