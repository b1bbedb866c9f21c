"""Produce requests: which batches they carry, and what a response means for each batch."""

from dataclasses import dataclass, field
from enum import Enum, auto

from barnabas.client.cluster import MetadataSnapshot
from barnabas.client.producer._batch import ProducerBatch
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import PartitionKey
from barnabas.net.frame_transport import GatheredRecords
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


@dataclass(slots=True, eq=False)
class InFlightProduce:
    """One Produce request: batches of different partitions to one node."""

    node_id: int
    sent_s: float
    batches: dict[PartitionKey, ProducerBatch] = field(default_factory=dict)
    size_bytes: int = 0


@dataclass(slots=True, frozen=True)
class PartitionResponse:
    """The part of a Produce response about one partition."""

    error: int
    base_offset: int = -1
    append_time_ms: int = -1
    message: str | None = None
    leader: tuple[int, int] | None = None  # node and epoch, from a former leader (KIP-951)


class BatchAction(Enum):
    """What the sender does with a batch after a response."""

    COMPLETE = auto()
    RETRY = auto()  # unchanged, after a backoff
    RETRY_MAYBE_APPENDED = auto()  # the same, but the batch may have been appended
    RETRY_ON_LEADER = auto()  # unchanged, to the present leader of the partition
    SPLIT = auto()  # in smaller batches
    OUT_OF_ORDER = auto()  # an earlier batch is missing on the broker
    FENCED = auto()  # the broker accepts nothing of this producer any more
    FAIL = auto()


def action_for(error_code: int) -> BatchAction:
    action = _ACTIONS.get(error_code)
    if action is not None:
        return action
    return BatchAction.RETRY if ErrorCode.of(error_code).retriable else BatchAction.FAIL


_ACTIONS: dict[int, BatchAction] = {
    ErrorCode.NONE: BatchAction.COMPLETE,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: BatchAction.COMPLETE,
    ErrorCode.REQUEST_TIMED_OUT: BatchAction.RETRY_MAYBE_APPENDED,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: BatchAction.RETRY_MAYBE_APPENDED,
    ErrorCode.NETWORK_EXCEPTION: BatchAction.RETRY_MAYBE_APPENDED,
    ErrorCode.UNKNOWN_SERVER_ERROR: BatchAction.FAIL,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: BatchAction.RETRY_ON_LEADER,
    ErrorCode.LEADER_NOT_AVAILABLE: BatchAction.RETRY_ON_LEADER,
    ErrorCode.FENCED_LEADER_EPOCH: BatchAction.RETRY_ON_LEADER,
    ErrorCode.UNKNOWN_LEADER_EPOCH: BatchAction.RETRY_ON_LEADER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: BatchAction.RETRY_ON_LEADER,
    ErrorCode.UNKNOWN_TOPIC_ID: BatchAction.RETRY_ON_LEADER,
    ErrorCode.INCONSISTENT_TOPIC_ID: BatchAction.RETRY_ON_LEADER,
    ErrorCode.REPLICA_NOT_AVAILABLE: BatchAction.RETRY_ON_LEADER,
    ErrorCode.KAFKA_STORAGE_ERROR: BatchAction.RETRY_ON_LEADER,
    ErrorCode.MESSAGE_TOO_LARGE: BatchAction.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: BatchAction.SPLIT,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: BatchAction.OUT_OF_ORDER,
    ErrorCode.UNKNOWN_PRODUCER_ID: BatchAction.OUT_OF_ORDER,
    ErrorCode.INVALID_PRODUCER_EPOCH: BatchAction.OUT_OF_ORDER,
    ErrorCode.PRODUCER_FENCED: BatchAction.FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: BatchAction.FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: BatchAction.FENCED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: BatchAction.FENCED,
}


def build_request(
    settings: ProducerSettings, in_flight: InFlightProduce, metadata: MetadataSnapshot
) -> ProduceRequest:
    """Returns the request. It refers to the buffers of the batches and does not copy them."""
    topics: dict[str, TopicProduceData] = {}
    for (name, partition), batch in in_flight.batches.items():
        topic = topics.get(name)
        if topic is None:
            topic_id = metadata.topics[name].topic_id
            topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id)
        records = GatheredRecords([batch.buffer])
        topic.partition_data.append(PartitionProduceData(index=partition, records=records))
    return ProduceRequest(
        transactional_id=settings.transactional_id,
        acks=settings.acks,
        timeout_ms=settings.ack_timeout_ms,
        topic_data=list(topics.values()),
    )


def partition_responses(
    response: ProduceResponse, request: ProduceRequest
) -> dict[PartitionKey, PartitionResponse]:
    """Returns the response by partition; from version 13 on topics are named by their ids alone."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    responses: dict[PartitionKey, PartitionResponse] = {}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partition_responses:
            leader = partition.current_leader
            responses[name, partition.index] = PartitionResponse(
                partition.error_code,
                partition.base_offset,
                partition.log_append_time_ms,
                _with_indexes(
                    partition.error_message, [each.batch_index for each in partition.record_errors]
                ),
                None if leader.leader_id < 0 else (leader.leader_id, leader.leader_epoch),
            )
    return responses


def _with_indexes(message: str | None, indexes: list[int]) -> str | None:
    if message and indexes:
        return f"{message} (records {', '.join(map(str, indexes))} of the batch)"
    return message
