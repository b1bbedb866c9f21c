"""Log lines about records that are lost or wait, and that no delivery report tells about."""

from collections import Counter
from collections.abc import Iterable

from barnabas.client.errors import KafkaError, client_log
from barnabas.client.producer._batch import ProducerBatch
from barnabas.client.settings import ProducerSettings

PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""The user has purged these records, or aborted their transaction: they know."""


def log_undelivered(settings: ProducerSettings, count: int, *, has_timed_out: bool) -> None:
    """Logs that a producer goes away before all of its records are delivered.

    `has_timed_out` says whether it waited for them, but not long enough.
    """
    if not count:
        return
    client_log(settings).warning(
        "%s: %s not delivered: %s",
        settings.client_id,
        _records(count),
        "flush() or close() timed out. Pass a longer timeout, and check what they return."
        if has_timed_out
        else "the producer ended too early. Call flush() first.",
    )


def log_failed(settings: ProducerSettings, batches: Iterable[ProducerBatch]) -> None:
    """Logs batches that failed and have no on_delivery callback, one line for each error."""
    counts: Counter[tuple[str, str]] = Counter()
    for batch in batches:
        if batch.error is not None and batch.error.code() not in PURGED:
            counts[batch.topic, batch.error.str()] += batch.record_count
    for (topic, reason), count in counts.items():
        client_log(settings).warning(
            "%s: %s not delivered to %s: %s. Pass on_delivery to handle such errors.",
            settings.client_id,
            _records(count),
            topic,
            reason.removesuffix("."),
        )


def log_missing_topic(settings: ProducerSettings, topic: str, timeout_s: float) -> None:
    """Logs that records wait for a topic that does not exist."""
    client_log(settings).warning(
        "%s: topic %s does not exist: its records wait for up to %g s. Create the topic.",
        settings.client_id,
        topic,
        timeout_s,
    )


def log_open_transaction(settings: ProducerSettings) -> None:
    """Logs that a producer goes away in the middle of a transaction."""
    client_log(settings).warning(
        "%s: the transaction of %s was not committed: the producer ended too early. "
        "Call commit_transaction() or abort_transaction() first.",
        settings.client_id,
        settings.transactional_id,
    )


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count} records were"
