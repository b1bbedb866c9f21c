"""AlterPartition (key 56): a leader has changed who is in sync with it.

It is also what completes a reassignment: once all that shall stay are in sync, the others go.
v2 topic ids; v3 the broker epoch of every in-sync replica.
"""

from barnabas.controller.broker_lifecycle import require_broker_epoch
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.partition_change import (
    acceptable_leader_predicate,
    build_partition_change,
    election_rules,
)
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.replay import apply_partition_change
from barnabas.metadata.states import PartitionRegistration, RecoveryState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.schema import Message


def decide(
    request: AlterPartitionRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    require_broker_epoch(request.broker_id, request.broker_epoch, image)
    records: list[Message] = []
    topics = []
    for topic in request.topics:
        outcomes = []
        seen: set[int] = set()
        for asked in topic.partitions:
            try:
                if asked.partition_index in seen:  # it builds on what the first has changed
                    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
                seen.add(asked.partition_index)
                outcomes.append(_alter(request.broker_id, topic, asked, image, context, records))
            except KafkaError as error:
                outcomes.append(
                    ResponsePartitionData(
                        partition_index=asked.partition_index, error_code=error.code
                    )
                )
        topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=outcomes))
    return Decision(records, AlterPartitionResponse(topics=topics))


def _alter(
    leader: int,
    asked_topic: RequestTopicData,
    asked: RequestPartitionData,
    image: MetadataImage,
    context: ControllerContext,
    records: list[Message],
) -> ResponsePartitionData:
    topic = image.topics.by_id(asked_topic.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    members = asked.new_isr_with_epochs or [
        BrokerState(broker_id=broker_id) for broker_id in asked.new_isr
    ]
    _require_current(leader, asked, partition)
    _require_possible(members, asked, partition, image)
    record = build_partition_change(
        topic.topic_id,
        asked.partition_index,
        partition,
        election_rules(topic, image, context),
        acceptable_leader_predicate(image, partition),
        isr=tuple(member.broker_id for member in members),
        recovery_state=asked.leader_recovery_state,
    )
    if record is not None:
        records.append(record)
        partition = apply_partition_change(partition, record)
        if partition.leader != leader:
            # Its request went through, but it no longer leads: it must look at the metadata.
            raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)
    return ResponsePartitionData(
        partition_index=asked.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _require_current(
    leader: int, asked: RequestPartitionData, partition: PartitionRegistration
) -> None:
    """The request must be of the present leader and build on the present state."""
    if (
        asked.leader_epoch > partition.leader_epoch
        or asked.partition_epoch > partition.partition_epoch
    ):
        # It knows more than we do: another controller must have been elected.
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if asked.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if leader != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if asked.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _require_possible(
    members: list[BrokerState],
    asked: RequestPartitionData,
    partition: PartitionRegistration,
    image: MetadataImage,
) -> None:
    isr = [member.broker_id for member in members]
    recovering = asked.leader_recovery_state == RecoveryState.RECOVERING
    if (
        len(set(isr)) < len(isr)
        or not set(isr) <= set(partition.replicas)
        or partition.leader not in isr
        or (recovering and len(isr) > 1)
        or (recovering and partition.recovery_state == RecoveryState.RECOVERED)
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    for member in members:
        broker = image.brokers.get(member.broker_id)
        if broker is None or not broker.active or member.broker_epoch not in (-1, broker.epoch):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
