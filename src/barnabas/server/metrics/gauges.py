"""The gauges of a broker and of a controller, by the names of Kafka's metrics."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.metadata.states import NO_LEADER
from barnabas.server.metrics.registry import Gauge

if TYPE_CHECKING:
    from barnabas.metadata.states import TopicImage
    from barnabas.server.nodes import BrokerNode, ControllerNode

_REPLICAS = "kafka_server_replicamanager_"
_SESSIONS = "kafka_server_fetchsessioncache_"


class BrokerGauges:
    """Computed at every scrape."""

    def __init__(self, broker: "BrokerNode") -> None:
        self._broker = broker

    def __iter__(self) -> Iterator[Gauge]:
        broker = self._broker
        for operation, size in broker.purgatory.sizes.items():
            labels = {"delayedOperation": operation}
            yield Gauge("kafka_server_delayedoperationpurgatory_purgatorysize", size, labels)
        sessions = broker.fetch_sessions
        yield Gauge(_SESSIONS + "numincrementalfetchsessions", len(sessions))
        yield Gauge(_SESSIONS + "numincrementalfetchpartitionscached", sessions.partition_count)
        yield Gauge(_SESSIONS + "incrementalfetchsessionevictions_total", sessions.evictions)
        yield Gauge(
            "kafka_server_brokermetadatametrics_last_applied_record_offset", broker.image.offset
        )
        yield from self._replicas()
        yield from self._logs()

    def _replicas(self) -> Iterator[Gauge]:
        counts: Counter[str] = Counter()
        for topic in self._broker.image.topics:
            self._count(topic, counts)
        for name in (
            "partitioncount",
            "leadercount",
            "underreplicatedpartitions",
            "underminisrpartitioncount",
            "atminisrpartitioncount",
            "reassigningpartitions",
        ):
            yield Gauge(_REPLICAS + name, counts[name])
        changes = self._broker.partitions.alter_partition_manager
        yield Gauge(_REPLICAS + "isrexpands_total", changes.expanded)
        yield Gauge(_REPLICAS + "isrshrinks_total", changes.shrunk)
        yield Gauge(_REPLICAS + "failedisrupdates_total", changes.failed)

    def _count(self, topic: "TopicImage", counts: Counter[str]) -> None:
        node_id = self._broker.node_id
        min_in_sync: int = self._broker.resolver.topic(topic.name)["min.insync.replicas"]
        for partition in topic.partitions.values():
            counts["partitioncount"] += node_id in partition.replicas
            if partition.leader != node_id:
                continue
            in_sync, needed = len(partition.isr), min(min_in_sync, len(partition.replicas))
            counts["leadercount"] += 1
            counts["underreplicatedpartitions"] += in_sync < len(partition.replicas)
            counts["underminisrpartitioncount"] += in_sync < needed
            counts["atminisrpartitioncount"] += in_sync == needed
            counts["reassigningpartitions"] += partition.is_reassigning

    def _logs(self) -> Iterator[Gauge]:
        partitions = self._broker.partitions
        failed = 0
        for partition in partitions.opened():
            failed += partition.error_code is not None
            labels = {"topic": partition.topic, "partition": str(partition.index)}
            yield Gauge("kafka_log_log_size", partition.log.size_bytes, labels)
            yield Gauge("kafka_log_log_logstartoffset", partition.log.log_start_offset, labels)
            yield Gauge("kafka_log_log_logendoffset", partition.log.log_end_offset, labels)
        yield Gauge(_REPLICAS + "offlinereplicacount", failed)
        lost = len(partitions.log_dirs.offline_paths)
        yield Gauge("kafka_log_logmanager_offlinelogdirectorycount", lost)


_CONTROLLER = "kafka_controller_kafkacontroller_"


class ControllerGauges:
    """Computed at every scrape.

    Every controller has the metadata and reports these gauges, as Kafka's do; one is active.
    """

    def __init__(self, node: "ControllerNode") -> None:
        self._node = node

    def __iter__(self) -> Iterator[Gauge]:
        image = self._node.image
        partitions = leaderless = not_preferred = 0
        for topic in image.topics:
            partitions += len(topic.partitions)
            for partition in topic.partitions.values():
                leaderless += partition.leader == NO_LEADER
                not_preferred += partition.leader != partition.preferred_leader
        fenced = sum(broker.fenced for broker in image.brokers.values())
        counts = {
            "activecontrollercount": int(self._node.controller.is_active),
            "activebrokercount": len(image.brokers) - fenced,
            "fencedbrokercount": fenced,
            "globaltopiccount": len(image.topics),
            "globalpartitioncount": partitions,
            "offlinepartitionscount": leaderless,
            "preferredreplicaimbalancecount": not_preferred,
            "lastappliedrecordoffset": image.offset,
        }
        for name, count in counts.items():
            yield Gauge(_CONTROLLER + name, count)
