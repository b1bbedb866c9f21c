"""The last commit decision of a query, and its encoding in committed offsets.

A decision names a batch and the transactions that have its rows. It is stored as the offsets that
the group `<prefix>` has committed for the topic `__barnabas_sink`: the offset is the batch id
plus one, so that tools see a query's progress; the metadata of partition 0, 1, ... have the rest
in chunks, since a broker accepts at most `offset.metadata.max.bytes` (4,096) for each partition:

    "<chunks>:<text>"    text: base 85 of zlib of JSON

All chunks are committed in one transaction, whose commit is the decision.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import transactional_ids

TOPIC = "__barnabas_sink"
MAX_CHUNKS = 16
"""Partitions of the topic, each with one chunk of a decision."""

CHUNK_BYTES = 4_000
_MAX_JSON_BYTES = 1 << 20  # when a decision is read


class DecisionError(ValueError):
    """A decision is too large to encode, or the committed offsets are not a decision."""


@dataclass(slots=True, frozen=True)
class TaskTransaction:
    """The rows of one task, in an open transaction."""

    task: int
    rows: int
    prepared: PreparedTransaction


@dataclass(slots=True, frozen=True)
class CommitDecision:
    batch: int
    tasks: int
    """The number of tasks of the batch, including those without rows."""
    transactions: tuple[TaskTransaction, ...]
    topic: str | None
    """The topic of all rows; None if each row names its own."""


def encode(prefix: str, decision: CommitDecision) -> list[str]:
    """Returns the metadata of the partitions, beginning with partition 0."""
    workers: dict[str, list[list[int]]] = {}
    for task_transaction in decision.transactions:
        prepared = task_transaction.prepared
        worker, number = transactional_ids.split_task_id(prefix, prepared.transactional_id)
        workers.setdefault(worker, []).append(
            [
                task_transaction.task,
                task_transaction.rows,
                number,
                prepared.producer_id,
                prepared.epoch,
            ]
        )
    content = [decision.batch, decision.tasks, decision.topic, workers]
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
    text = base64.b85encode(packed).decode()
    chunks = [text[start : start + CHUNK_BYTES] for start in range(0, len(text), CHUNK_BYTES)]
    if len(chunks) > MAX_CHUNKS:
        raise DecisionError(
            f"batch {decision.batch} was written by {len(decision.transactions)} tasks, more "
            f"than one decision can name: write fewer partitions, as with coalesce()"
        )
    return [f"{len(chunks)}:{chunk}" for chunk in chunks]


def decode(prefix: str, chunks: Mapping[int, str] | Sequence[str]) -> CommitDecision:
    """Decodes the metadata of the partitions.

    Chunks of an older and longer decision may follow those of the current one.
    """
    try:
        count, _, _ = chunks[0].partition(":")
        text = "".join(chunks[index].partition(":")[2] for index in range(int(count)))
        unpacked = zlib.decompressobj().decompress(base64.b85decode(text), _MAX_JSON_BYTES)
        batch, tasks, topic, workers = json.loads(unpacked)
        written = [
            TaskTransaction(
                task,
                rows,
                PreparedTransaction(
                    transactional_ids.task_id(prefix, worker, number), producer_id, epoch
                ),
            )
            for worker, entries in workers.items()
            for task, rows, number, producer_id, epoch in entries
        ]
    except (ValueError, KeyError, IndexError, TypeError, zlib.error) as error:
        raise DecisionError(
            f"group {prefix} has offsets of {TOPIC} that are not a decision of this sink: {error!r}"
        ) from None
    return CommitDecision(batch, tasks, tuple(sorted(written, key=lambda entry: entry.task)), topic)
