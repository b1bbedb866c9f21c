"""AlterPartitionReassignments (key 45): other replicas for a partition, or back to the old ones.

The new replicas come to the old ones at once; when all that shall stay are in sync, the others
are dropped (see AlterPartition). v1 may refuse to change the replication factor (KIP-860).
"""

from barnabas.controller.assignments import require_assignable
from barnabas.controller.decision import Context, Decision, default_directory, require_bounded
from barnabas.controller.elections import (
    Assignment,
    Election,
    can_lead,
    change_partition,
    rules_for,
)
from barnabas.metadata.image import Image
from barnabas.metadata.replay import changed_partition
from barnabas.metadata.states import PartitionState, RecoveryState, TopicState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from barnabas.wire.schema import Message


def decide(request: AlterPartitionReassignmentsRequest, image: Image, context: Context) -> Decision:
    records: list[Message] = []
    responses = []
    factor_may_change = request.allow_replication_factor_change
    for asked_topic in request.topics:
        topic = image.topics.by_name(asked_topic.name)
        outcomes = []
        # A partition that is named twice is moved on from where the first left it.
        now = dict(topic.partitions) if topic is not None else {}
        for asked in asked_topic.partitions:
            number = asked.partition_index
            try:
                if topic is None or number not in now:
                    raise _unknown(asked_topic.name, number)
                record = _reassign(topic, asked, now[number], factor_may_change, image, context)
            except KafkaError as error:
                outcomes.append(_outcome(number, error))
                continue
            if record is not None:
                records.append(record)
                now[number] = changed_partition(now[number], record)
            outcomes.append(_outcome(number, None))
        responses.append(ReassignableTopicResponse(name=asked_topic.name, partitions=outcomes))
    require_bounded(records)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=factor_may_change, error_message=None, responses=responses
    )
    return Decision(records, response)


def _reassign(
    topic: TopicState,
    asked: ReassignablePartition,
    partition: PartitionState,
    factor_may_change: bool,
    image: Image,
    context: Context,
) -> PartitionChangeRecord | None:
    if asked.replicas is None:
        return _cancel(topic, asked.partition_index, partition, image, context)
    replicas = require_assignable(asked.replicas, image, None)
    staying = len(partition.replicas) - len(partition.removing)
    if not factor_may_change and len(replicas) != staying:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {staying} to {len(replicas)}.",
        )
    original = [r for r in partition.replicas if r not in partition.adding]
    adding = tuple(sorted(r for r in replicas if r not in original))
    removing = tuple(sorted(r for r in partition.replicas if r not in replicas))
    return change_partition(
        topic.topic_id,
        asked.partition_index,
        partition,
        rules_for(topic, image, context, election=Election.ONLINE),
        can_lead(image, partition),
        assignment=Assignment((*replicas, *removing), adding, removing),
        directories={
            replica: default_directory(image.brokers.get(replica))
            for replica in replicas
            if replica not in partition.replicas
        },
    )


def _cancel(
    topic: TopicState, number: int, partition: PartitionState, image: Image, context: Context
) -> PartitionChangeRecord | None:
    """Back to the replicas from before; those that were to be added go."""
    if not partition.is_moving:
        raise KafkaError(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
        )
    rules = rules_for(topic, image, context)
    original = tuple(r for r in partition.replicas if r not in partition.adding)
    isr = tuple(r for r in partition.isr if r not in partition.adding)
    recovery_state = None
    if not isr:
        if rules.election is not Election.UNCLEAN:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The reassignment of {topic.name}-{number} cannot be taken back: none of its "
                "replicas from before is in sync, so it would require an unclean leader election.",
            )
        isr, recovery_state = original[:1], RecoveryState.RECOVERING
    return change_partition(
        topic.topic_id,
        number,
        partition,
        rules,
        can_lead(image, partition),
        isr=isr,
        assignment=Assignment(original),
        recovery_state=recovery_state,
    )


def _unknown(topic_name: str, number: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic_name}-{number}."
    )


def _outcome(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=number,
        error_code=error.code if error is not None else ErrorCode.NONE,
        error_message=error.message if error is not None else None,
    )
