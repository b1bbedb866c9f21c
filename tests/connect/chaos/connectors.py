"""The connectors of a run: rows and lines pass through topics into files and tables."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.connect.chaos.databases import SOURCE_TABLE

ROWS, LINES = TOPICS = ("chaos-rows", "chaos-lines")
PARTITIONS = 2

ROW_SOURCE, LINE_SOURCE = "row-source", "line-source"
FILE_SINK, UPSERT_SINK, INSERT_SINK = "file-sink", "upsert-sink", "insert-sink"
UPSERTS, INSERTS = "upserted", "inserted"
"""The tables of sinks."""

_READ_COMMITTED = {"consumer.override.isolation.level": "read_committed"}


@dataclass(slots=True, frozen=True)
class ConnectorSpec:
    name: str
    config: Mapping[str, str]
    changes: Mapping[str, tuple[str, ...]]
    """Settings that may be changed while it runs, with their values."""

    @property
    def is_sink(self) -> bool:
        return "topics" in self.config

    def changed(self, rng: random.Random) -> dict[str, str]:
        """Returns settings of which one has been drawn again."""
        name = rng.choice(sorted(self.changes))
        return {**self.config, name: rng.choice(self.changes[name])}


def connectors(
    lines_file: Path, files: Path, database: Mapping[str, str], *, with_tables: bool = True
) -> list[ConnectorSpec]:
    specs = [
        ConnectorSpec(
            ROW_SOURCE,
            {
                "connector.class": "JdbcSource",
                **database,
                "mode": "incrementing",
                "incrementing.column.name": "id",
                "table.whitelist": SOURCE_TABLE,
                "topic.prefix": ROWS.removesuffix(SOURCE_TABLE),
                "poll.interval.ms": "200",
            },
            {"batch.max.rows": ("10", "50", "1000"), "poll.interval.ms": ("100", "500")},
        ),
        ConnectorSpec(
            LINE_SOURCE,
            {"connector.class": "FileStreamSource", "file": str(lines_file), "topic": LINES},
            {"batch.size": ("10", "100", "2000"), "barnabas.max.rows.per.task": ("20", "500")},
        ),
        ConnectorSpec(
            FILE_SINK,
            {
                "connector.class": "ObjectStoreSink",
                "topics": ",".join(TOPICS),
                "store.url": str(files),
                "format.class": "json",
                "flush.size": "50",
                "rotate.schedule.interval.ms": "700",
                "tasks.max": "2",
                **_READ_COMMITTED,
            },
            {"flush.size": ("20", "50", "90"), "tasks.max": ("1", "2", "3")},
        ),
    ]
    if with_tables:
        table_sink = {
            "connector.class": "JdbcSink",
            **database,
            "topics": ROWS,
            "auto.create": "true",
            "barnabas.exactly.once": "true",
            **_READ_COMMITTED,
        }
        changes = {"tasks.max": ("1", "2"), "batch.size": ("30", "3000")}
        upserts = {
            "insert.mode": "upsert",
            "pk.mode": "record_value",
            "pk.fields": "id",
            "table.name.format": UPSERTS,
        }
        specs += [
            ConnectorSpec(UPSERT_SINK, {**table_sink, **upserts}, changes),
            ConnectorSpec(INSERT_SINK, {**table_sink, "table.name.format": INSERTS}, changes),
        ]
    return specs
