"""Writes down for the reader of a trace what the metadata says, as soon as one node knows."""

from tests.simulation.cluster.happenings import Happenings
from tests.simulation.cluster.hosts import Host

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration


class Chronicle:
    """One line for each partition and each broker that changed."""

    def __init__(self, events: Happenings) -> None:
        self._events = events
        self._newest = -1

    def look(self, _: Host, delta: MetadataDelta, image: MetadataImage) -> None:
        if image.offset <= self._newest:
            return
        self._newest = image.offset
        for (topic_id, index), state in delta.partitions_changed.items():
            topic = image.topics.by_id(topic_id)
            if topic is not None:
                self._events.note("metadata", f"{topic.name}-{index}: {_told(state)}")
        for broker_id in sorted(delta.brokers_changed):
            broker = image.brokers.get(broker_id)
            if broker is not None:
                is_in = "is let in" if broker.active else "is not let in"
                self._events.note("metadata", f"broker {broker_id} of epoch {broker.epoch} {is_in}")


def _told(state: PartitionRegistration) -> str:
    told = (
        f"leader {state.leader} in epoch {state.leader_epoch}.{state.partition_epoch}, in sync "
        f"{state.isr} of {state.replicas}, eligible {state.elr} {state.last_known_elr}"
    )
    if state.is_reassigning:
        told += f", adding {state.adding}, removing {state.removing}"
    return told
