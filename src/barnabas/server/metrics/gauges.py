"""The gauges of a broker and of a controller, by the names of Kafka's metrics."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.metadata.states import NO_LEADER
from barnabas.server.metrics.registry import Gauge
from barnabas.wire.errors import KafkaError

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


_CLEANER = "kafka_log_logcleaner_"
_CLEANER_MANAGER = "kafka_log_logcleanermanager_"


class CleanerGauges:
    """What the log cleaner does, computed at every scrape. There are none without a cleaner."""

    def __init__(self, broker: "BrokerNode") -> None:
        self._broker = broker

    def __iter__(self) -> Iterator[Gauge]:
        if not self._broker.resolver.broker("log.cleaner.enable"):
            return
        stats = self._broker.partitions.cleaner.stats
        last = stats.last_cleanings
        utilization = max((cleaning.map_utilization for cleaning in last), default=0.0)
        source_bytes = sum(cleaning.source_bytes for cleaning in last)
        recopied = sum(cleaning.cleaned_bytes for cleaning in last) / max(source_bytes, 1)
        elapsed_s = max((cleaning.elapsed_s for cleaning in last), default=0.0)
        since_ms = self._broker.clock() - stats.last_round_ms
        yield Gauge(_CLEANER + "max_buffer_utilization_percent", round(100 * utilization))
        yield Gauge(_CLEANER + "cleaner_recopy_percent", round(100 * recopied))
        yield Gauge(_CLEANER + "max_clean_time_secs", round(elapsed_s, 3))
        yield Gauge(_CLEANER + "max_compaction_delay_secs", stats.max_compaction_delay_ms // 1000)
        yield Gauge(_CLEANER + "deadthreadcount", 0)  # a log that fails is given up, not a thread
        yield Gauge(_CLEANER_MANAGER + "max_dirty_percent", round(100 * stats.max_dirty_ratio))
        yield Gauge(_CLEANER_MANAGER + "time_since_last_run_ms", max(since_ms, 0))
        io_bytes = self._broker.partitions.cleaner.throttler.total_bytes
        yield Gauge("kafka_utils_throttler_cleaner_io_count", io_bytes)
        yield from self._uncleanable()

    def _uncleanable(self) -> Iterator[Gauge]:
        partitions = self._broker.partitions
        counts: Counter[str] = Counter()
        dirty_bytes: Counter[str] = Counter()
        for partition in partitions.opened():
            log = partition.log
            if log.compaction is None or not log.compaction.uncleanable_reason:
                continue
            counts[log.directory.path] += 1
            with suppress(KafkaError, OSError):  # its files are damaged
                cleanable = partitions.cleaner.cleanable_range(log, partition.last_stable_offset)
                dirty_bytes[log.directory.path] += cleanable.cleanable_bytes
        for directory in partitions.log_dirs.online():
            labels = {"logDirectory": directory.path}
            count, size_bytes = counts[directory.path], dirty_bytes[directory.path]
            yield Gauge(_CLEANER_MANAGER + "uncleanable_partitions_count", count, labels)
            yield Gauge(_CLEANER_MANAGER + "uncleanable_bytes", size_bytes, labels)


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
