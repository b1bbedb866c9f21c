"""The settings without effect: what the table says, what the code reads, what the page says."""

import ast
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from barnabas.config import broker, client_metrics, group, topic
from barnabas.config.changes import ConfigResourceType
from barnabas.config.gaps import GAPS, gap_warnings
from barnabas.config.setting import Setting

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "barnabas"
PAGE = (ROOT / "docs" / "compatibility.md").read_text()
PACKAGES = (
    "controller",
    "coordinator",
    "log",
    "metadata",
    "net",
    "node",
    "raft",
    "replication",
    "security",
)
READERS = [
    *(
        path
        for package in (*PACKAGES, "security", "server")
        for path in (SOURCES / package).rglob("*.py")
    ),
    SOURCES / "config" / "listeners.py",
    SOURCES / "config" / "providers.py",
    SOURCES / "config" / "settings.py",
]

KINDS: dict[ConfigResourceType, Mapping[str, Setting]] = {
    ConfigResourceType.BROKER: broker.SETTINGS | broker.DYNAMIC_ONLY,
    ConfigResourceType.TOPIC: topic.SETTINGS,
    ConfigResourceType.GROUP: group.SETTINGS,
    ConfigResourceType.CLIENT_METRICS: client_metrics.SETTINGS,
}

HARMLESS = {
    "sizes of thread pools, buffers and purgatories": (
        "*.buffer.max.bytes",
        "*.load.buffer.size",
        "*.purgatory.purge.interval.requests",
        "*.threads",
        "num.recovery.threads.per.data.dir",
        "replica.socket.receive.buffer.bytes",
    ),
    "`*.append.linger.ms`": ("*.append.linger.ms",),
    "`log.flush.*offset.checkpoint.interval.ms`": ("log.flush.*offset.checkpoint.interval.ms",),
    "`controlled.shutdown.enable`": ("controlled.shutdown.enable",),
    "`log.dir.failure.timeout.ms`": ("log.dir.failure.timeout.ms",),
    "`log.initial.task.delay.ms`": ("log.initial.task.delay.ms",),
    "`offsets.topic.compression.codec`": ("offsets.topic.compression.codec",),
    "`controller.performance.*`, `metrics.*`": ("controller.performance.*", "metrics.*"),
    "`controller.socket.timeout.ms`, `server.max.startup.time.ms`, "
    "`socket.connection.setup.timeout.*`": (
        "controller.socket.timeout.ms",
        "server.max.startup.time.ms",
        "socket.connection.setup.timeout.*",
    ),
    "`internal.metadata.*`": ("internal.metadata.*",),
}
"""Settings that no user misses, by their line in docs/compatibility.md."""


def names_in_code() -> Iterator[str]:
    """Yields the strings of all readers; each expression in an f-string becomes `*`."""
    for path in READERS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "*"
                    for part in node.values
                )


def read_settings() -> dict[ConfigResourceType, set[str]]:
    """Returns the settings that the code reads by their names, or as the default of another."""
    texts = {text for text in names_in_code() if re.fullmatch(r"[a-z*][a-z0-9.*]+", text)}
    patterns = [text for text in texts if "*" in text and re.search(r"[a-z]{3}", text)]
    read = {
        kind: {
            name
            for name in settings
            if name in texts or any(fnmatchcase(name, pattern) for pattern in patterns)
        }
        for kind, settings in KINDS.items()
    }
    for kind in (ConfigResourceType.TOPIC, ConfigResourceType.GROUP):
        for name in read[kind]:
            read[ConfigResourceType.BROKER].update(KINDS[kind][name].synonyms)
    read[ConfigResourceType.BROKER].update(
        f"group.consumer.{bound}.{name.removeprefix('consumer.')}"
        for bound in ("min", "max")
        for name in read[ConfigResourceType.GROUP]
    )
    return read


def in_table(kind: ConfigResourceType, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for gap in GAPS for pattern in gap.names(kind))


READ = read_settings()


@pytest.mark.parametrize("kind", KINDS)
def test_a_setting_that_nothing_reads_belongs_to_a_gap_or_is_harmless(
    kind: ConfigResourceType,
) -> None:
    harmless = [pattern for patterns in HARMLESS.values() for pattern in patterns]
    assert [
        name
        for name in KINDS[kind]
        if name not in READ[kind]
        and not in_table(kind, name)
        and not any(fnmatchcase(name, pattern) for pattern in harmless)
    ] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_setting_that_belongs_to_a_gap_is_not_read(kind: ConfigResourceType) -> None:
    assert {name for name in READ[kind] if in_table(kind, name)} == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_the_table_is_a_setting(kind: ConfigResourceType) -> None:
    patterns = {pattern for gap in GAPS for pattern in gap.names(kind)}
    plugins = {"rlmm.config.*", "rsm.config.*"}
    assert {
        pattern
        for pattern in patterns - plugins
        if not any(fnmatchcase(name, pattern) for name in KINDS[kind])
    } == set()


@pytest.mark.parametrize("feature", [gap.feature for gap in GAPS])
def test_every_gap_is_one_of_the_compatibility_page(feature: str) -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert "gap" in rows[feature]


def test_the_page_lists_the_harmless_settings() -> None:
    (_, section) = PAGE.split("no effect either, without a warning:\n\n")
    listed = re.findall(r"^- ([^:]+?)(?::[^-]*)?$", section, re.MULTILINE)
    assert [" ".join(line.split()) for line in listed] == list(HARMLESS)


@pytest.mark.parametrize(
    ("kind", "explicit", "warnings"),
    [
        (ConfigResourceType.TOPIC, {"local.retention.ms": "-2", "retention.ms": "5"}, []),
        (ConfigResourceType.TOPIC, {"local.retention.ms": "long"}, []),
        (
            ConfigResourceType.TOPIC,
            {"local.retention.ms": "1", "remote.storage.enable": "true"},
            ["local.retention.ms and remote.storage.enable have no effect yet"],
        ),
        (
            ConfigResourceType.BROKER,
            {"security.providers": "p", "unstable.api.versions.enable": "true"},
            ["security.providers has no effect", "unstable.api.versions.enable has no effect"],
        ),
        (
            ConfigResourceType.BROKER,
            {"unstable.api.versions.enable": "true", "listener.name.x.ssl.provider": "P"},
            ["listener.name.x.ssl.provider has no effect yet", "unstable.api.versions.enable has"],
        ),
        (
            ConfigResourceType.BROKER,
            {
                f"remote.log.{name}": "7"
                for name in (
                    "reader.threads",
                    "reader.max.pending.tasks",
                    "manager.thread.pool.size",
                    "manager.task.interval.ms",
                    "index.file.cache.total.size.bytes",
                    "metadata.custom.metadata.max.bytes",
                )
            },
            ["remote.log.index.file.cache.total.size.bytes and 1 more settings have no effect"],
        ),
        (ConfigResourceType.BROKER, {"num.io.threads": "16", "log.retention.hours": "1"}, []),
        (ConfigResourceType.BROKER, {"rsm.config.bucket": "b"}, ["rsm.config.bucket has no"]),
        (ConfigResourceType.GROUP, {"share.session.timeout.ms": "46000"}, ["share.session"]),
        (ConfigResourceType.GROUP, {"consumer.session.timeout.ms": "46000"}, []),
        (ConfigResourceType.CLIENT_METRICS, {"interval.ms": "1000"}, []),
    ],
)
def test_explicit_values_that_have_no_effect_are_warnings(
    kind: ConfigResourceType, explicit: dict[str, str], warnings: list[str]
) -> None:
    lines = gap_warnings(kind, explicit)
    assert len(lines) == len(warnings)
    for line, warning in zip(lines, warnings, strict=True):
        assert warning in line
        assert "secret" not in line
