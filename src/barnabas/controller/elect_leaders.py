"""ElectLeaders (key 43): elects the preferred leader, or from v1 any live replica."""

from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.controller.partition_change import Election, elect_leader
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import NO_LEADER
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from barnabas.wire.schema import Message

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def decide(
    request: ElectLeadersRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        )
    is_for_all = request.topic_partitions is None
    records: list[Message] = []
    results = []
    for requested in _requested_partitions(request, image):
        partition_results = []
        for index in requested.partitions:
            try:
                records.append(_elect(requested.topic, index, election, image, context))
                partition_results.append(PartitionResult(partition_id=index, error_message=None))
            except KafkaError as error:
                # A request for all partitions reports only those with an election.
                if not is_for_all or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                    partition_results.append(_error_result(index, error))
        results.append(
            ReplicaElectionResult(topic=requested.topic, partition_result=partition_results)
        )
    require_record_limit(records)
    return Decision(records, ElectLeadersResponse(replica_election_results=results))


def _requested_partitions(
    request: ElectLeadersRequest, image: MetadataImage
) -> list[TopicPartitions]:
    if request.topic_partitions is not None:
        return request.topic_partitions
    return [
        TopicPartitions(topic=topic.name, partitions=list(topic.partitions))
        for topic in image.topics
    ]


def _elect(
    topic_name: str,
    index: int,
    election: Election,
    image: MetadataImage,
    context: ControllerContext,
) -> PartitionChangeRecord:
    topic = image.topics.by_name(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_name}-{index}"
        )
    has_leader = partition.leader != NO_LEADER
    if partition.leader == partition.replicas[0] or (election is Election.UNCLEAN and has_leader):
        raise KafkaError(
            ErrorCode.ELECTION_NOT_NEEDED, f"{topic_name}-{index} is led by {partition.leader}."
        )
    record = elect_leader(topic, index, election, image, context)
    if record is None:
        missing = (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if election is Election.PREFERRED
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
        raise KafkaError(
            missing,
            f"No replica of {topic_name}-{index} can replace the leader {partition.leader}: "
            f"replicas {list(partition.replicas)}, in sync {list(partition.isr)}.",
        )
    return record


def _error_result(index: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)
