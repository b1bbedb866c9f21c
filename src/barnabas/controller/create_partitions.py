"""CreatePartitions (key 37): more partitions for existing topics, never fewer."""

from collections import Counter

from barnabas.controller.context import (
    MAX_RECORDS,
    ControllerContext,
    ControllerDecision,
    require_record_limit,
)
from barnabas.controller.partition_assignment import new_partition, validate_manual_assignment
from barnabas.controller.replica_placer import place_replicas
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import partition_record
from barnabas.metadata.states import Replicas, TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_partitions import (
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
            records += _new_partitions(topic, image, context)
        except KafkaError as error:
            results.append(_result(topic.name, error))
        else:
            results.append(CreatePartitionsTopicResult(name=topic.name))
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_result(name, twice) for name, count in mentions.items() if count > 1]
    require_record_limit(records)
    response = CreatePartitionsResponse(results=results)
    return Decision([] if request.validate_only else records, response)


def _new_partitions(
    asked: CreatePartitionsTopic, image: MetadataImage, context: ControllerContext
) -> list[Message]:
    topic = image.topics.by_name(asked.name)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{asked.name}' does not exist."
        )
    present = len(topic.partitions)
    if asked.count <= present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name} has {present} partition(s) already; {asked.count} would not be "
            "an increase.",
        )
    if asked.count - present > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"The request asks for {asked.count - present} partitions at once, and {MAX_RECORDS} "
            "are allowed.",
        )
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    if asked.assignments is None:
        added = asked.count - present
        placed = place_replicas(
            image.brokers.values(), added, replication_factor, context.random_below
        )
    else:
        placed = _assigned(asked.assignments, asked.count, topic, image, replication_factor)
    return [
        partition_record(topic.topic_id, index, new_partition(index, replicas, image))
        for index, replicas in enumerate(placed, present)
    ]


def _assigned(
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
            f"{added} partition(s) would be added to topic {topic.name}, but "
            f"{len(assignments)} assignment(s) were given.",
        )
    return [
        validate_manual_assignment(assignment.broker_ids, image, replication_factor)
        for assignment in assignments
    ]


def _result(name: str, error: KafkaError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message
    )
