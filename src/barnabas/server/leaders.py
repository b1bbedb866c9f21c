"""Where a client that asked the wrong broker finds the leader, said in the refusal (KIP-951)."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from barnabas.metadata.states import NO_LEADER, Endpoint, endpoint_of
from barnabas.server.call import Call

E = TypeVar("E")


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


def name_leaders(
    refused: Iterable[tuple[str | bytes, int, Any]],
    call: Call,
    leader_and_epoch: Callable[..., Any],
    node_endpoint: Callable[..., E],
) -> list[E]:
    """Say in the answers of these partitions who leads them, and return where those listen.

    Each comes with its topic and index; the last two are the classes of the API's response.
    """
    endpoints: dict[int, E] = {}
    for topic, index, answer in refused:
        leader = leader_of(topic, index, call)
        if leader is None:
            continue
        answer.current_leader = leader_and_epoch(
            leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
        )
        if leader.endpoint is not None:
            endpoints[leader.leader_id] = node_endpoint(
                node_id=leader.leader_id,
                host=leader.endpoint.host,
                port=leader.endpoint.port,
                rack=leader.rack,
            )
    return list(endpoints.values())
