"""Where a client that asked the wrong broker finds the leader, said in the refusal (KIP-951)."""

from typing import NamedTuple

from barnabas.metadata.states import NO_LEADER, Endpoint
from barnabas.server.call import Call
from barnabas.server.topic_view import endpoint_of


class Leader(NamedTuple):
    """The leader as the metadata has it, and its address if the client's listener reaches it."""

    leader_id: int
    leader_epoch: int
    endpoint: Endpoint | None
    rack: str | None


def leader_of(topic: str | bytes, index: int, call: Call) -> Leader | None:
    """The leader of a partition of a topic, named or by id; None if the metadata has neither."""
    image = call.broker.image
    topics = image.topics
    state = topics.by_name(topic) if isinstance(topic, str) else topics.by_id(topic)
    partition = state.partitions.get(index) if state is not None else None
    if partition is None:
        return None
    broker = image.brokers.get(partition.leader) if partition.leader != NO_LEADER else None
    if broker is None or broker.fenced:
        return Leader(partition.leader, partition.leader_epoch, None, None)
    endpoint = endpoint_of(broker, call.listener)
    return Leader(partition.leader, partition.leader_epoch, endpoint, broker.rack)
