"""What is measured, by subject; the order is the order of a whole run."""

from bench.case import Case
from bench.sections import (
    clients,
    groups,
    idle,
    requests,
    start,
    state,
    throughput,
    topics,
    transactions,
)

SECTIONS: dict[str, list[Case]] = {
    "start": start.CASES,
    "produce": throughput.PRODUCE,
    "paced": throughput.PACED,
    "consume": throughput.CONSUME,
    "latency": clients.LATENCY,
    "clients": clients.CLIENTS,
    "connections": requests.CONNECTIONS,
    "partitions": requests.PARTITIONS,
    "commit": groups.COMMIT,
    "members": groups.MEMBERSHIP,
    "transactions": transactions.CASES,
    "topics": topics.CREATE,
    "restart": topics.RESTART,
    "state": state.CASES,
    "idle": idle.CASES,
    "many": topics.MANY,
}

NEED_WARM_UP = {
    "produce",
    "paced",
    "consume",
    "latency",
    "clients",
    "connections",
    "partitions",
    "commit",
    "members",
    "transactions",
}
"""Sections that would measure a JVM before its compiler has done its work."""
