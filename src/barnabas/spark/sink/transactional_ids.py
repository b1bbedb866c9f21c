"""Names of transactional ids: those of a query or job, and of each process that writes for it.

    driver   <prefix>                   e.g. barnabas-sink-1b9d6bcd
    a task   <prefix>-<worker>-<n>      e.g. barnabas-sink-1b9d6bcd-4f1a9c0e77d2b3a8-0

The worker's part is drawn at random wherever ids are numbered, so that no two ever share one:
whoever is late can do no harm to whoever came after.
"""

import re
import secrets

_WORKER_HEX = 16


def new_worker() -> str:
    return secrets.token_hex(_WORKER_HEX // 2)


def of_task(prefix: str, worker: str, number: int) -> str:
    return f"{prefix}-{worker}-{number}"


def parts_of(prefix: str, transactional_id: str) -> tuple[str, int]:
    """The worker and the number in a task's id."""
    worker, _, number = transactional_id.removeprefix(f"{prefix}-").rpartition("-")
    return worker, int(number)


def pattern(prefix: str) -> str:
    """Matches the ids of all tasks, whole, and no id of another prefix (RE2)."""
    return f"{re.escape(prefix)}-[0-9a-f]{{{_WORKER_HEX}}}-[0-9]+"
