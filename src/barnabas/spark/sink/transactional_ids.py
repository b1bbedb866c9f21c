"""The transactional ids of a query or job: the driver's, and those of the worker processes.

    driver   <prefix>                   e.g. barnabas-sink-1b9d6bcd
    a task   <prefix>-<worker>-<n>      e.g. barnabas-sink-1b9d6bcd-4f1a9c0e77d2b3a8-0

The worker's part is random in each process that numbers ids, so that two processes never share an
id: a process that is late cannot fence a newer one.
"""

import re
import secrets

_WORKER_HEX = 16


def random_worker_id() -> str:
    return secrets.token_hex(_WORKER_HEX // 2)


def task_id(prefix: str, worker: str, number: int) -> str:
    return f"{prefix}-{worker}-{number}"


def split_task_id(prefix: str, transactional_id: str) -> tuple[str, int]:
    """Returns the worker and the number of a task's id."""
    worker, _, number = transactional_id.removeprefix(f"{prefix}-").rpartition("-")
    return worker, int(number)


def task_id_pattern(prefix: str) -> str:
    """Returns an RE2 pattern for the whole ids of all tasks, which matches no other prefix."""
    return f"{re.escape(prefix)}-[0-9a-f]{{{_WORKER_HEX}}}-[0-9]+"
