"""What was decided last, and how it is kept where it is found at once: with committed offsets.

A decision names a batch and the transactions that are its rows. It is kept as the offsets that
the group `<prefix>` has committed for the topic `__barnabas_sink`: the offset is the batch and
one more, so that tools see a query's progress; the metadata of partition 0, 1, ... have the rest
in pieces, since a broker takes no more than `offset.metadata.max.bytes` of it (4,096) each:

    "<pieces>:<text>"    text: base 85 of zlib of JSON

All pieces are committed in one transaction, whose commit is the decision.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import transactional_ids

TOPIC = "__barnabas_sink"
PIECES = 16
"""Partitions of the topic: what a decision may be cut into."""

PIECE_BYTES = 4_000
_MOST_BYTES = 1 << 20  # of the JSON, when it is read


class DecisionError(ValueError):
    """It cannot be written down, or what is written there is not one."""


@dataclass(slots=True, frozen=True)
class TaskTransaction:
    """What one task has left behind: rows in an open transaction."""

    task: int
    rows: int
    transaction: PreparedTransaction


@dataclass(slots=True, frozen=True)
class CommitDecision:
    batch: int
    tasks: int
    """How many the batch had, with those that had no rows to write."""
    written: tuple[TaskTransaction, ...]
    topic: str | None
    """Of all rows; None where each names its own."""


def encode(prefix: str, decision: CommitDecision) -> list[str]:
    """The metadata of the first partitions, in their order."""
    workers: dict[str, list[list[int]]] = {}
    for each in decision.written:
        it = each.transaction
        worker, number = transactional_ids.parts_of(prefix, it.transactional_id)
        entry = [each.task, each.rows, number, it.producer_id, it.epoch]
        workers.setdefault(worker, []).append(entry)
    content = [decision.batch, decision.tasks, decision.topic, workers]
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
    text = base64.b85encode(packed).decode()
    pieces = [text[at : at + PIECE_BYTES] for at in range(0, len(text), PIECE_BYTES)]
    if len(pieces) > PIECES:
        raise DecisionError(
            f"batch {decision.batch} was written by {len(decision.written)} tasks, more than one "
            f"decision can name: write fewer partitions, as with coalesce()"
        )
    return [f"{len(pieces)}:{piece}" for piece in pieces]


def decode(prefix: str, pieces: Mapping[int, str] | Sequence[str]) -> CommitDecision:
    """From the metadata of partitions; there may be older ones behind those that count."""
    try:
        count, _, _ = pieces[0].partition(":")
        text = "".join(pieces[index].partition(":")[2] for index in range(int(count)))
        unpacked = zlib.decompressobj().decompress(base64.b85decode(text), _MOST_BYTES)
        batch, tasks, topic, workers = json.loads(unpacked)
        written = [
            TaskTransaction(
                task,
                rows,
                PreparedTransaction(transactional_ids.of_task(prefix, worker, n), pid, epoch),
            )
            for worker, entries in workers.items()
            for task, rows, n, pid, epoch in entries
        ]
    except (ValueError, KeyError, IndexError, TypeError, zlib.error) as problem:
        raise DecisionError(
            f"group {prefix} has offsets of {TOPIC} that are no decision of this sink: {problem!r}"
        ) from None
    return CommitDecision(batch, tasks, tuple(sorted(written, key=lambda each: each.task)), topic)
