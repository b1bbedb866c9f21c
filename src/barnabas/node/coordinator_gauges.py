"""What the coordinators of a broker tell of themselves to a scrape."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.coordinator.groups.consumer.group import ConsumerState
from barnabas.coordinator.groups.coordinator import GroupCoordinator
from barnabas.coordinator.groups.group import GroupType
from barnabas.coordinator.runtime import Runtime
from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
from barnabas.server.metrics import Gauge

_MANAGER = "kafka_coordinator_group_groupmetadatamanager_"
_GROUPS = "kafka_server_group_coordinator_metrics_"
_TRANSACTIONS = "kafka_server_transaction_coordinator_metrics_"


class CoordinatorGauges:
    """Counted anew by each scrape."""

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
        for shard in self._groups.runtime.active():
            offsets += shard.state.offsets.count
            groups = shard.state.groups.values()
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


def _partition_gauges(prefix: str, runtime: Runtime[Any]) -> Iterator[Gauge]:
    yield Gauge(prefix + "num_partitions", len(runtime.active()), {"state": "active"})
    yield Gauge(prefix + "num_partitions", runtime.loading_count, {"state": "loading"})
    yield Gauge(prefix + "num_partitions", runtime.failed_count, {"state": "failed"})
