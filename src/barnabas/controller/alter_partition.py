"""AlterPartition (key 56): a leader changes the ISR of its partitions.

It also completes a reassignment: once all target replicas are in sync, the others are removed.
v2 adds topic ids; v3 the broker epoch of every in-sync replica.
"""

from barnabas.controller.broker_lifecycle import require_broker_epoch
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.partition_change import (
    acceptable_leader_predicate,
    build_partition_change,
    election_rules,
    require_partition,
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
        partitions = []
        seen: set[int] = set()
        for requested in topic.partitions:
            try:
                if requested.partition_index in seen:  # its epoch is that before the first change
                    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
                seen.add(requested.partition_index)
                partitions.append(
                    _alter(request.broker_id, topic, requested, image, context, records)
                )
            except KafkaError as error:
                partitions.append(
                    ResponsePartitionData(
                        partition_index=requested.partition_index, error_code=error.code
                    )
                )
        topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=partitions))
    return Decision(records, AlterPartitionResponse(topics=topics))


def _alter(
    leader: int,
    requested_topic: RequestTopicData,
    requested: RequestPartitionData,
    image: MetadataImage,
    context: ControllerContext,
    records: list[Message],
) -> ResponsePartitionData:
    topic, partition = require_partition(image, requested_topic.topic_id, requested.partition_index)
    isr_members = requested.new_isr_with_epochs or [
        BrokerState(broker_id=broker_id) for broker_id in requested.new_isr
    ]
    _require_current(leader, requested, partition)
    _require_valid_isr(isr_members, requested, partition, image)
    record = build_partition_change(
        topic.topic_id,
        requested.partition_index,
        partition,
        election_rules(topic, image, context),
        acceptable_leader_predicate(image, partition),
        isr=tuple(member.broker_id for member in isr_members),
        recovery_state=requested.leader_recovery_state,
    )
    if record is not None:
        records.append(record)
        partition = apply_partition_change(partition, record)
        if partition.leader != leader:
            # The change is made, but the sender no longer leads: it has to read the metadata.
            raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)
    return ResponsePartitionData(
        partition_index=requested.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _require_current(
    leader: int, requested: RequestPartitionData, partition: PartitionRegistration
) -> None:
    """Raises KafkaError unless the sender leads and knows the current partition epoch."""
    if (
        requested.leader_epoch > partition.leader_epoch
        or requested.partition_epoch > partition.partition_epoch
    ):
        # The sender has newer metadata: another controller must be active.
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if requested.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if leader != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if requested.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _require_valid_isr(
    isr_members: list[BrokerState],
    requested: RequestPartitionData,
    partition: PartitionRegistration,
    image: MetadataImage,
) -> None:
    isr = [member.broker_id for member in isr_members]
    recovering = requested.leader_recovery_state == RecoveryState.RECOVERING
    if (
        len(set(isr)) < len(isr)
        or not set(isr) <= set(partition.replicas)
        or partition.leader not in isr
        or (recovering and len(isr) > 1)
        or (recovering and partition.recovery_state == RecoveryState.RECOVERED)
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    for member in isr_members:
        broker = image.brokers.get(member.broker_id)
        if broker is None or not broker.active or member.broker_epoch not in (-1, broker.epoch):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
