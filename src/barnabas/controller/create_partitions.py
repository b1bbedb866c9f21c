"""CreatePartitions (key 37): adds partitions to existing topics."""

from collections import Counter

from barnabas.controller.context import (
    MAX_RECORDS,
    ControllerContext,
    ControllerDecision,
    excessive_partitions,
    require_record_limit,
)
from barnabas.controller.replica_placer import (
    new_partition,
    place_replicas,
    validate_manual_assignment,
)
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import partition_record
from barnabas.metadata.states import Replicas, TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.wire.schema import Message


def decide(
    request: CreatePartitionsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    mentions = Counter(topic.name for topic in request.topics)
    records: list[Message] = []
    results = []
    for topic in request.topics:
        if mentions[topic.name] > 1:
            continue
        try:
            added = _new_partitions(topic, image, context)
            context.record_mutations(len(added))
            records += added
        except KafkaError as error:
            results.append(_result(topic.name, error))
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    duplicate = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_result(name, duplicate) for name, count in mentions.items() if count > 1]
    require_record_limit(records)
    response = CreatePartitionsResponse(results=results)
    return Decision([] if request.validate_only else records, response)


def _new_partitions(
    requested: CreatePartitionsTopic, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    topic = image.topics.by_name(requested.name)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{requested.name}' does not exist."
        )
    existing_count = len(topic.partitions)
    if requested.count == existing_count:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {existing_count} partition(s)."
        )
    if requested.count < existing_count:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {existing_count} partition(s); "
            f"{requested.count} would not be an increase.",
        )
    if requested.count - existing_count > MAX_RECORDS:
        raise excessive_partitions(requested.count - existing_count)
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    if requested.assignments is None:
        added = requested.count - existing_count
        placed = place_replicas(
            image.brokers.values(), added, replication_factor, context.random_below
        )
    else:
        placed = _manual_assignments(
            requested.assignments, requested.count, topic, image, replication_factor
        )
    return [
        partition_record(topic.topic_id, index, new_partition(index, replicas, image))
        for index, replicas in enumerate(placed, existing_count)
    ]


def _manual_assignments(
    assignments: list[CreatePartitionsAssignment],
    count: int,
    topic: TopicImage,
    image: MetadataImage,
    replication_factor: int,
) -> list[Replicas]:
    added = count - len(topic.partitions)
    if len(assignments) != added:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only {len(assignments)} "
            "assignment(s) were specified.",
        )
    return [
        validate_manual_assignment(assignment.broker_ids, image, replication_factor)
        for assignment in assignments
    ]


def _result(name: str, error: KafkaError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message
    )
