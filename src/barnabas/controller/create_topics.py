"""CreateTopics (key 19): creates topics, with replicas placed by the controller or by hand.

v4 takes -1 for the default partition count and replication factor; v5 returns the topic's
configs; v6 may be throttled; v7 returns topic ids.
"""

from collections import Counter

from barnabas.config.changes import ConfigResourceType
from barnabas.config.errors import InvalidConfig
from barnabas.controller.config_changes import config_error_code, config_records
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
from barnabas.controller.topic_names import (
    require_name_available,
    validate_topic_name,
)
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import partition_record
from barnabas.metadata.states import PartitionRegistration
from barnabas.raft import METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import TopicRecord
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.schema import Message


def decide(
    request: CreateTopicsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    _require_partition_limit(request, context)
    mentions = Counter(topic.name for topic in request.topics)
    records: list[Message] = []
    results: list[CreatableTopicResult] = []
    for topic in request.topics:
        if mentions[topic.name] > 1:
            continue
        try:
            partitions, configs = _plan(topic, image, context)
            context.record_mutations(len(partitions))
        except KafkaError as error:
            results.append(_error_result(topic.name, error))
            continue
        topic_id = context.random_uuid()
        records += _records(topic.name, topic_id, partitions, configs, image)
        results.append(
            CreatableTopicResult(
                name=topic.name,
                topic_id=topic_id,
                error_message=None,
                num_partitions=len(partitions),
                replication_factor=len(partitions[0].replicas),
                configs=context.topic_configs.describe(configs),
            )
        )
    duplicate = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_error_result(name, duplicate) for name, count in mentions.items() if count > 1]
    require_record_limit(records)
    response = CreateTopicsResponse(topics=results)
    return Decision([] if request.validate_only else records, response)


def _plan(
    topic: CreatableTopic, image: MetadataImage, context: ControllerContext
) -> tuple[list[PartitionRegistration], dict[str, str]]:
    if topic.name == METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {topic.name} is prohibited."
        )
    validate_topic_name(topic.name)
    require_name_available(topic.name, image)
    configs = _valid_configs(topic, context)
    return _partitions(topic, image, context), configs


def _valid_configs(topic: CreatableTopic, context: ControllerContext) -> dict[str, str]:
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    if configs:
        try:
            context.resolver.validate_topic(configs)
        except InvalidConfig as problem:
            raise KafkaError(config_error_code(problem), str(problem)) from problem
    return configs


def _partitions(
    topic: CreatableTopic, image: MetadataImage, context: ControllerContext
) -> list[PartitionRegistration]:
    if topic.assignments:
        return _assigned_partitions(topic, image)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    replication_factor = topic.replication_factor
    if replication_factor == -1:
        replication_factor = context.resolver.broker("default.replication.factor")
    count = _partition_count(topic, context)
    placed = place_replicas(image.brokers.values(), count, replication_factor, context.random_below)
    return [new_partition(index, replicas, image) for index, replicas in enumerate(placed)]


def _assigned_partitions(
    topic: CreatableTopic, image: MetadataImage
) -> list[PartitionRegistration]:
    for value, what in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if value != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    partitions: dict[int, PartitionRegistration] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in partitions:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        replicas = validate_manual_assignment(assignment.broker_ids, image, replication_factor)
        replication_factor = len(replicas)
        partitions[index] = new_partition(index, replicas, image)
    if set(partitions) != set(range(len(partitions))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [partitions[index] for index in range(len(partitions))]


def _partition_count(topic: CreatableTopic, context: ControllerContext) -> int:
    if topic.num_partitions == -1:
        return int(context.resolver.broker("num.partitions"))
    return topic.num_partitions


def _require_partition_limit(request: CreateTopicsRequest, context: ControllerContext) -> None:
    total = sum(
        len(topic.assignments) or max(_partition_count(topic, context), 0)
        for topic in request.topics
    )
    if total > MAX_RECORDS:
        raise excessive_partitions(total)


def _records(
    name: str,
    topic_id: bytes,
    partitions: list[PartitionRegistration],
    configs: dict[str, str],
    image: MetadataImage,
) -> list[Message]:
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *config_records((ConfigResourceType.TOPIC, name), configs, image),
        *(partition_record(topic_id, index, state) for index, state in enumerate(partitions)),
    ]


def _error_result(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)
