"""Gauges of coordinators, quorum and replication, under the names of Kafka's metrics."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.coordinator.groups.consumer.group import ConsumerState
from barnabas.coordinator.groups.coordinator import GroupCoordinator
from barnabas.coordinator.groups.group import GroupType
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
from barnabas.raft import Quorum
from barnabas.replication.replica_fetcher.manager import ReplicaFetcherManager
from barnabas.server.metrics.registry import Gauge

_MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
_GROUPS = "kafka_server_group_coordinator_metrics_"
_TRANSACTIONS = "kafka_server_transaction_coordinator_metrics_"
_RAFT = "kafka_server_raftmetrics_"
_ALL = "kafka_server_replicafetchermanager_"
_EACH = "kafka_server_fetcherstats_"
_CLIENT = {"clientId": "Replica"}


class CoordinatorGauges:
    """Groups, offsets and coordinator partitions, counted at each scrape."""

    def __init__(self, groups: GroupCoordinator, transactions: TransactionCoordinator) -> None:
        self._groups = groups
        self._transactions = transactions

    def __iter__(self) -> Iterator[Gauge]:
        yield from self._group_gauges()
        yield from _partition_gauges(_GROUPS, self._groups.runtime)
        yield from _partition_gauges(_TRANSACTIONS, self._transactions.runtime)

    def _group_gauges(self) -> Iterator[Gauge]:
        counts: Counter[tuple[GroupType, str]] = Counter()
        offsets = 0
        for shard in self._groups.runtime.active_shards():
            offsets += shard.state.offsets.count
            groups = shard.state.by_id.values()
            counts.update((group.group_type, group.state_name) for group in groups)
        by_type: Counter[GroupType] = Counter()
        for (group_type, _), count in counts.items():
            by_type[group_type] += count
        yield Gauge(_MANAGER + "numoffsets", offsets)
        yield Gauge(_MANAGER + "numgroups", by_type[GroupType.CLASSIC])
        for state in ClassicState:
            yield Gauge(_MANAGER + f"numgroups{state.lower()}", counts[GroupType.CLASSIC, state])
        for group_type in GroupType:
            yield Gauge(_GROUPS + "group_count", by_type[group_type], {"protocol": group_type})
        for consumer_state in ConsumerState:
            labels = {"state": consumer_state.lower()}
            count = counts[GroupType.CONSUMER, consumer_state]
            yield Gauge(_GROUPS + "consumer_group_count", count, labels)


def _partition_gauges(prefix: str, runtime: CoordinatorRuntime[Any]) -> Iterator[Gauge]:
    yield Gauge(prefix + "num_partitions", len(runtime.active_shards()), {"state": "active"})
    yield Gauge(prefix + "num_partitions", runtime.loading_count, {"state": "loading"})
    yield Gauge(prefix + "num_partitions", runtime.failed_count, {"state": "failed"})


class QuorumGauges:
    """The state of this node's raft replica."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    def __iter__(self) -> Iterator[Gauge]:
        quorum = self._quorum
        status = quorum.describe()
        yield Gauge(_RAFT + "current_state", 1, {"current_state": quorum.state_name})
        yield Gauge(_RAFT + "current_leader", status.leader_id)
        yield Gauge(_RAFT + "current_epoch", status.epoch)
        yield Gauge(_RAFT + "high_watermark", status.high_watermark)
        yield Gauge(_RAFT + "log_end_offset", status.end_offset)
        yield Gauge(_RAFT + "number_of_voters", len(status.voters))
        if quorum.is_leader:
            yield Gauge(_RAFT + "number_of_observers", len(status.observer_states))


class ReplicationGauges:
    """The replica fetchers of a broker, with the lag of each partition they fetch."""

    def __init__(self, fetchers: ReplicaFetcherManager) -> None:
        self._fetchers = fetchers

    def __iter__(self) -> Iterator[Gauge]:
        fetchers = self._fetchers
        yield Gauge(_ALL + "maxlag", fetchers.max_lag, _CLIENT)
        yield Gauge(_ALL + "failedpartitionscount", fetchers.failed_count, _CLIENT)
        yield Gauge(
            "kafka_server_brokertopicmetrics_replicationbytesin_total", fetchers.received_bytes
        )
        for leader_id, number, fetcher in fetchers.by_leader():
            client = {"clientId": f"ReplicaFetcherThread-{number}-{leader_id}"}
            yield Gauge(_EACH + "requests_total", fetcher.requests, client)
            yield Gauge(_EACH + "bytes_total", fetcher.received_bytes, client)
            for followed in fetcher:
                partition = followed.partition
                labels = {"topic": partition.topic, "partition": f"{partition.index}"}
                yield Gauge(
                    "kafka_server_fetcherlagmetrics_consumerlag", followed.lag, client | labels
                )
