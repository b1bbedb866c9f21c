"""AlterPartitionReassignments (key 45): other replicas for a partition, or back to the old ones.

The new replicas come to the old ones at once; when all that shall stay are in sync, the others
are dropped (see AlterPartition). v1 may refuse to change the replication factor (KIP-860).
"""

from barnabas.controller.context import (
    ControllerContext,
    ControllerDecision,
    default_directory,
    require_record_limit,
)
from barnabas.controller.partition_assignment import validate_manual_assignment
from barnabas.controller.partition_change import (
    Election,
    ReplicaAssignment,
    acceptable_leader_predicate,
    build_partition_change,
    election_rules,
)
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.replay import apply_partition_change
from barnabas.metadata.states import PartitionRegistration, RecoveryState, TopicImage
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


def decide(
    request: AlterPartitionReassignmentsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
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
                now[number] = apply_partition_change(now[number], record)
            outcomes.append(_outcome(number, None))
        responses.append(ReassignableTopicResponse(name=asked_topic.name, partitions=outcomes))
    require_record_limit(records)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=factor_may_change, error_message=None, responses=responses
    )
    return Decision(records, response)


def _reassign(
    topic: TopicImage,
    asked: ReassignablePartition,
    partition: PartitionRegistration,
    factor_may_change: bool,
    image: MetadataImage,
    context: ControllerContext,
) -> PartitionChangeRecord | None:
    if asked.replicas is None:
        return _cancel(topic, asked.partition_index, partition, image, context)
    replicas = validate_manual_assignment(asked.replicas, image, None)
    staying = len(partition.replicas) - len(partition.removing)
    if not factor_may_change and len(replicas) != staying:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {staying} to {len(replicas)}.",
        )
    original = [r for r in partition.replicas if r not in partition.adding]
    adding = tuple(sorted(r for r in replicas if r not in original))
    removing = tuple(sorted(r for r in partition.replicas if r not in replicas))
    return build_partition_change(
        topic.topic_id,
        asked.partition_index,
        partition,
        election_rules(topic, image, context, election=Election.ONLINE),
        acceptable_leader_predicate(image, partition),
        assignment=ReplicaAssignment((*replicas, *removing), adding, removing),
        directories={
            replica: default_directory(image.brokers.get(replica))
            for replica in replicas
            if replica not in partition.replicas
        },
    )


def _cancel(
    topic: TopicImage,
    number: int,
    partition: PartitionRegistration,
    image: MetadataImage,
    context: ControllerContext,
) -> PartitionChangeRecord | None:
    """Back to the replicas from before; those that were to be added go."""
    if not partition.is_reassigning:
        raise KafkaError(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
        )
    rules = election_rules(topic, image, context)
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
    return build_partition_change(
        topic.topic_id,
        number,
        partition,
        rules,
        acceptable_leader_predicate(image, partition),
        isr=isr,
        assignment=ReplicaAssignment(original),
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
