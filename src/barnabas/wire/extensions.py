"""Tagged fields that Barnabas adds to messages of Kafka's protocol.

A node adds one to a response only if the request has its tag too: no other client ever receives it.
Kafka's brokers ignore the tag in a request, as they ignore every tag that they do not know. Kafka
numbers its own tags from 0.
"""

from __future__ import annotations

from barnabas.wire.messages.log_dirs import DescribeLogDirsPartition, DescribeLogDirsRequest
from barnabas.wire.schema import Message, field, float64, int64, string

COMPACTION_TAG = 10_000


class CompactionStatus(Message, versions="0"):
    """How far the log of a replica is compacted: for each compacted one, in DescribeLogDirs."""

    dirty_ratio: float64 = field()
    """-1 if it is unknown, because the log is damaged."""
    last_cleaned_ms: int64 = field()
    """-1 if it was not cleaned since the broker started."""
    uncleanable_reason: string = field()
    """Why it is not cleaned; empty if it is."""


def request_compaction_status(request: DescribeLogDirsRequest) -> None:
    request.unknown_tags = {COMPACTION_TAG: b""}


def requests_compaction_status(request: DescribeLogDirsRequest) -> bool:
    return COMPACTION_TAG in (request.unknown_tags or ())


def put_compaction_status(replica: DescribeLogDirsPartition, status: CompactionStatus) -> None:
    replica.unknown_tags = {COMPACTION_TAG: status.write(0)}


def get_compaction_status(replica: DescribeLogDirsPartition) -> CompactionStatus | None:
    content = (replica.unknown_tags or {}).get(COMPACTION_TAG)
    return None if content is None else CompactionStatus.read(content, 0)[0]
