"""AlterPartitionReassignments (key 45) and ListPartitionReassignments (46).

The first moves partitions to other replicas, or cancels that. The new replicas are added at once;
when all target replicas are in sync, the others are removed (see AlterPartition). v1 can forbid
changes of the replication factor (KIP-860).
"""

from collections.abc import Iterable

from barnabas.controller.context import (
    ControllerContext,
    ControllerDecision,
    default_directory,
    require_record_limit,
)
from barnabas.controller.partition_change import (
    Election,
    ReplicaAssignment,
    acceptable_leader_predicate,
    build_partition_change,
    election_rules,
    existing_partitions,
)
from barnabas.controller.replica_placer import validate_manual_assignment
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import PartitionKey
from barnabas.metadata.replay import apply_partition_change
from barnabas.metadata.states import PartitionRegistration, RecoveryState, TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.wire.schema import Message


def decide_alter_reassignments(
    request: AlterPartitionReassignmentsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    records: list[Message] = []
    responses = []
    allow_factor_change = request.allow_replication_factor_change
    for requested_topic in request.topics:
        topic = image.topics.by_name(requested_topic.name)
        results = []
        # A partition that is listed twice is changed from the state after the first change.
        current = dict(topic.partitions) if topic is not None else {}
        for requested in requested_topic.partitions:
            number = requested.partition_index
            try:
                if topic is None:
                    raise _unknown(f"Unable to find a topic named {requested_topic.name}.")
                if number not in current:
                    raise _unknown(f"Unable to find partition {topic.name}:{number}.")
                record = _reassign(
                    topic, requested, current[number], allow_factor_change, image, context
                )
            except KafkaError as error:
                results.append(_result(number, error))
                continue
            if record is not None:
                records.append(record)
                current[number] = apply_partition_change(current[number], record)
            results.append(_result(number, None))
        responses.append(ReassignableTopicResponse(name=requested_topic.name, partitions=results))
    require_record_limit(records)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=allow_factor_change, error_message=None, responses=responses
    )
    return Decision(records, response)


def _reassign(
    topic: TopicImage,
    requested: ReassignablePartition,
    partition: PartitionRegistration,
    allow_factor_change: bool,
    image: MetadataImage,
    context: ControllerContext,
) -> PartitionChangeRecord | None:
    if requested.replicas is None:
        return _cancel(topic, requested.partition_index, partition, image, context)
    replicas = validate_manual_assignment(requested.replicas, image, None)
    remaining = len(partition.replicas) - len(partition.removing)
    if not allow_factor_change and len(replicas) != remaining:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {remaining} to {len(replicas)}",
        )
    original = [r for r in partition.replicas if r not in partition.adding]
    adding = tuple(sorted(r for r in replicas if r not in original))
    removing = tuple(sorted(r for r in partition.replicas if r not in replicas))
    return build_partition_change(
        topic.topic_id,
        requested.partition_index,
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
    """Restores the original replicas and removes those that were being added."""
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
                f"Unable to revert partition assignment for {topic.name}:{number} because it would "
                "require an unclean leader election.",
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


def _unknown(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)


def _result(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=number,
        error_code=error.code if error is not None else ErrorCode.NONE,
        error_message=error.message if error is not None else None,
    )


def decide_list_reassignments(
    request: ListPartitionReassignmentsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    reassigning: dict[str, OngoingTopicReassignment] = {}
    for topic, number, partition in existing_partitions(
        image, _requested_partitions(request, image)
    ):
        if not partition.is_reassigning:
            continue
        ongoing = reassigning.setdefault(topic.name, OngoingTopicReassignment(name=topic.name))
        ongoing.partitions.append(
            OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
        )
    response = ListPartitionReassignmentsResponse(
        error_message=None, topics=list(reassigning.values())
    )
    return Decision([], response)


def _requested_partitions(
    request: ListPartitionReassignmentsRequest, image: MetadataImage
) -> Iterable[PartitionKey]:
    if request.topics is None:
        return image.topics.index.reassigning
    return [
        (topic.topic_id, number)
        for requested in request.topics
        if (topic := image.topics.by_name(requested.name)) is not None
        for number in requested.partition_indexes
    ]
