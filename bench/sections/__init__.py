"""The cases by section, in the order of a complete run."""

from bench.brokers import BrokerUnderTest
from bench.case import Case
from bench.clusters import ClusterUnderTest
from bench.sections import (
    clients,
    cluster_failover,
    cluster_many,
    cluster_speed,
    cold_reads,
    compaction,
    groups,
    idle,
    quotas,
    requests,
    start,
    state,
    throughput,
    tls,
    topics,
    transactions,
)

SECTIONS: dict[str, list[Case[BrokerUnderTest]]] = {
    "start": start.CASES,
    "produce": throughput.PRODUCE,
    "compressed-produce": throughput.COMPRESSED_PRODUCE,
    "paced": throughput.PACED,
    "consume": throughput.CONSUME,
    "compressed-consume": throughput.COMPRESSED_CONSUME,
    "tls": tls.CASES,
    "cold": cold_reads.CASES,
    "compaction-small": compaction.SMALL,
    "compaction-large": compaction.LARGE,
    "compaction-producer": compaction.BESIDE,
    "latency": clients.LATENCY,
    "clients": clients.CLIENTS,
    "connections": requests.CONNECTIONS,
    "partitions": requests.PARTITIONS,
    "quota": quotas.CASES,
    "commit": groups.COMMIT,
    "members": groups.MEMBERSHIP,
    "transactions": transactions.CASES,
    "topics": topics.CREATE,
    "restart": topics.RESTART,
    "recovery": topics.RECOVERY,
    "state": state.CASES,
    "offsets": state.COMPACTED,
    "idle": idle.CASES,
    "many": topics.MANY,
}

CLUSTER_SECTIONS: dict[str, list[Case[ClusterUnderTest]]] = {
    "cluster-speed": cluster_speed.CASES,
    "cluster-failover": cluster_failover.CASES,
    "cluster-many": cluster_many.CASES,
}
"""Sections with three nodes, of one implementation at a time: two would not fit on the machine."""

NEED_WARM_UP = {
    "produce",
    "compressed-produce",
    "paced",
    "consume",
    "compressed-consume",
    "cold",
    "compaction-producer",
    "latency",
    "clients",
    "connections",
    "partitions",
    "quota",
    "commit",
    "members",
    "transactions",
    "cluster-speed",
}
"""Sections that would otherwise measure a JVM before its compiler has finished."""
