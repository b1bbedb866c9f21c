"""Leaders: elect the preferred ones, or ones that are not in sync where no other is left."""

from collections.abc import Coroutine
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, outcome_of, require_partitions
from barnabas.client.admin.enums import ElectionType
from barnabas.client.admin.routes import topics_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

Elected = dict[TopicPartition, KafkaError | None]


class ElectionCalls(Calls):
    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: list[TopicPartition] | None = None,
        *,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Elected]:
        """Elect leaders of these partitions, or of all that need one.

        What is told for a partition that has its leader already is ELECTION_NOT_NEEDED.
        """
        if not isinstance(election_type, ElectionType):
            raise TypeError(f"{election_type!r} is no ElectionType")
        topics = None
        if partitions is not None:
            require_partitions("partitions", partitions, filled=False)
            by_topic = topics_of((each.topic, each.partition) for each in partitions)
            topics = [
                TopicPartitions(topic=topic, partitions=indexes)
                for topic, indexes in by_topic.items()
            ]
        deadline = self._deadline(request_timeout)
        request = ElectLeadersRequest(
            election_type=election_type.value,
            topic_partitions=topics,
            timeout_ms=self._wait_ms(operation_timeout, deadline),
        )
        return self._elect_leaders(request, deadline)

    async def _elect_leaders(self, request: ElectLeadersRequest, deadline: Deadline) -> Elected:
        response = await self._routes.ask_controller(request, deadline)
        elected: Elected = {}
        for topic in response.replica_election_results:
            for told in topic.partition_result:
                partition = TopicPartition(topic.topic, told.partition_id)
                partition.error = outcome_of(told.error_code, told.error_message)
                elected[partition] = partition.error
        return elected
