"""AssignReplicasToDirs (key 73): a broker reports the log directories of its replicas."""

from barnabas.controller.broker_lifecycle import require_broker_epoch
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.controller.partition_change import (
    acceptable_leader_predicate,
    build_partition_change,
    election_rules,
    require_partition,
)
from barnabas.decision import Decision
from barnabas.metadata.features import DIRECTORY_ASSIGNMENT_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from barnabas.wire.schema import Message


def decide(
    request: AssignReplicasToDirsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    if image.metadata_level < DIRECTORY_ASSIGNMENT_FROM:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Directories can be assigned from metadata.version {DIRECTORY_ASSIGNMENT_FROM} on; "
            f"this cluster is at {image.metadata_level}.",
        )
    broker = require_broker_epoch(request.broker_id, request.broker_epoch, image)
    records: list[Message] = []
    directories = []
    for directory in request.directories:
        topics = []
        for topic in directory.topics:
            partitions = []
            for partition in topic.partitions:
                index, code = partition.partition_index, ErrorCode.NONE
                try:
                    record = _assign(broker, directory.id, topic.topic_id, index, image, context)
                    if record is not None:
                        records.append(record)
                except KafkaError as error:
                    code = error.code
                partitions.append(ResponsePartitionData(partition_index=index, error_code=code))
            topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=partitions))
        directories.append(ResponseDirectoryData(id=directory.id, topics=topics))
    return Decision(records, AssignReplicasToDirsResponse(directories=directories))


def _assign(
    broker: BrokerRegistration,
    directory_id: bytes,
    topic_id: bytes,
    index: int,
    image: MetadataImage,
    context: ControllerContext,
) -> PartitionChangeRecord | None:
    topic, partition = require_partition(image, topic_id, index)
    broker_id = broker.broker_id
    if broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    is_acceptable = acceptable_leader_predicate(image, partition)
    online = broker.has_online(directory_id)

    def is_acceptable_after(candidate: int) -> bool:
        return is_acceptable(candidate) if candidate != broker_id else broker.active and online

    isr = partition.isr if online else tuple(r for r in partition.isr if r != broker_id)
    return build_partition_change(
        topic_id,
        index,
        partition,
        election_rules(topic, image, context),
        is_acceptable_after,
        isr=isr,
        directories={broker_id: directory_id},
    )
