"""Waits for the open transactions of the offset topic before positions are read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.model import IsolationLevel
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.values import TopicPartition
from barnabas.connect.execution.blocking import BlockingCalls
from barnabas.connect.execution.committer import SourceCommitter

log = logging.getLogger("barnabas.connect")

_POLL_S = 0.05
_RECOVERY_INTERVAL_S = 1.0
_LOG_AFTER_S = 10.0
_REQUEST_TIMEOUT_S = 30.0


async def recover_positions(
    committer: SourceCommitter, conf: Mapping[str, str], topic: str, blocking: BlockingCalls
) -> None:
    """Completes what an earlier driver has decided. Returns when the positions can be read.

    Readers of committed records see nothing after an open transaction, not even committed records.
    So it waits for all transactions that are open in the topic, also those of other connectors. An
    earlier driver of this one may still leave some open, undecided or decided: they are completed.
    """
    await blocking.run(committer.recover)
    async with AioAdminClient(dict(conf)) as admin:
        cluster = await admin.list_topics(topic, timeout=_REQUEST_TIMEOUT_S)
        latest = {
            TopicPartition(topic, index): OffsetSpec.latest()
            for index in cluster.topics[topic].partitions
        }
        ends = (await admin.list_offsets(latest)).all()
        committed = IsolationLevel.READ_COMMITTED
        started_s = checked_s = time.monotonic()
        has_logged = False
        while True:
            stable = (await admin.list_offsets(latest, isolation_level=committed)).all()
            if all(stable[key].offset >= ends[key].offset for key in ends):
                return
            now_s = time.monotonic()
            if now_s - checked_s > _RECOVERY_INTERVAL_S:
                await blocking.run(committer.recover)
                checked_s = time.monotonic()
            if not has_logged and now_s - started_s > _LOG_AFTER_S:
                log.info("waiting for open transactions in topic %s", topic)
                has_logged = True
            await asyncio.sleep(_POLL_S)
