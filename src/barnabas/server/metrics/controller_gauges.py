"""The gauges of a controller, by the names of Kafka's metrics.

Every controller has the metadata and reports these gauges, as Kafka's do; one of them is active.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.metadata.states import NO_LEADER
from barnabas.server.metrics.registry import Gauge

if TYPE_CHECKING:
    from barnabas.server.nodes import ControllerNode

_CONTROLLER = "kafka_controller_kafkacontroller_"


class ControllerGauges:
    """Computed at every scrape."""

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
