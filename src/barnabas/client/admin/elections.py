"""Leader elections: preferred, or unclean where no replica in sync is left."""

from collections.abc import Coroutine
from typing import Any

from barnabas.client.admin.enums import ElectionType
from barnabas.client.admin.model import by_topic
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import error_or_none
from barnabas.client.admin.validation import UNSET, require_partitions
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

ElectionErrors = dict[TopicPartition, KafkaError | None]


def elect_leaders(
    admin: AdminRequests,
    election_type: ElectionType,
    partitions: list[TopicPartition] | None = None,
    *,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, ElectionErrors]:
    """Elects the leaders of these partitions, or of all partitions that need an election.

    The result has the error of each partition: ELECTION_NOT_NEEDED if its leader is the right
    one already.
    """
    if not isinstance(election_type, ElectionType):
        raise TypeError(f"{election_type!r} is not an ElectionType")
    topics = None
    if partitions is not None:
        require_partitions("partitions", partitions, filled=False)
        topics = [
            TopicPartitions(topic=topic, partitions=[p.partition for p in of_topic])
            for topic, of_topic in by_topic(partitions).items()
        ]
    deadline = admin.deadline(request_timeout)
    request = ElectLeadersRequest(
        election_type=election_type.value,
        topic_partitions=topics,
        timeout_ms=admin.operation_timeout_ms(operation_timeout, deadline),
    )

    async def elect() -> ElectionErrors:
        response = await admin.send_to_controller(request, deadline)
        elected: ElectionErrors = {}
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                partition = TopicPartition(topic.topic, result.partition_id)
                partition.error = error_or_none(result.error_code, result.error_message)
                elected[partition] = partition.error
        return elected

    return elect()
