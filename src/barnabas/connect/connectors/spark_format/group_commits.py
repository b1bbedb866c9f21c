"""Commits how far a sink's query has read to its consumer group, after each micro-batch.

Spark tells a source of the end of a micro-batch only when the next one begins, which may be hours
later. Its progress reports come at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from barnabas.spark.progress import offsets_in
from barnabas.spark.source.cluster_client import SourceClusterClient
from barnabas.spark.source.connection import connect
from barnabas.spark.source.offsets import SourcePartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class GroupCommits(StreamingQueryListener):
    """Commits for the queries of one name, until one of them has ended."""

    def __init__(
        self, session: SparkSession, query: str, group: str, client: Mapping[str, str]
    ) -> None:
        self._session = session
        self._query = query
        self._group = group
        self._client = client
        self._run: object = None
        self._committed: dict[SourcePartition, int] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        if event.name == self._query and self._run is None:
            self._run = event.runId

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if event.progress.runId != self._run:
            return
        for source in event.progress.sources:
            found = offsets_in(source.endOffset) or {}
            offsets = {SourcePartition(*key): offset for key, offset in found.items()}
            if offsets and offsets != self._committed:
                self._committed = offsets
                cluster = SourceClusterClient(connect(self._client))
                cluster.commit_async(self._group, offsets)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        if event.runId == self._run:
            self._session.streams.removeListener(self)
