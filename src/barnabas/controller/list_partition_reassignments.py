"""ListPartitionReassignments (key 46): reassignments in progress, of some topics or of all."""

from collections.abc import Iterable

from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.partition_change import existing_partitions
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import PartitionKey
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def decide(
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
