"""Dispatches as Produce requests, and what the responses say of their batches."""

from barnabas.client.cluster import Metadata
from barnabas.client.producer.dispatch import Answer, Dispatch
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import TopicPartitionTuple
from barnabas.net.gathered_records import GatheredRecords
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


def request(settings: ProducerSettings, dispatch: Dispatch, metadata: Metadata) -> ProduceRequest:
    """The batches stay where they are: they are sent from there."""
    topics: dict[str, TopicProduceData] = {}
    for (name, partition), outbound in dispatch.batches.items():
        topic = topics.get(name)
        if topic is None:
            topic_id = metadata.topics[name].topic_id
            topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id)
        records = GatheredRecords([outbound.batch.records])
        topic.partition_data.append(PartitionProduceData(index=partition, records=records))
    return ProduceRequest(
        transactional_id=settings.transactional_id,
        acks=settings.acks,
        timeout_ms=settings.ack_timeout_ms,
        topic_data=list(topics.values()),
    )


def answers(response: ProduceResponse, asked: ProduceRequest) -> dict[TopicPartitionTuple, Answer]:
    """By partition; from version 13 on topics are named by their ids alone."""
    names = {topic.topic_id: topic.name for topic in asked.topic_data}
    told: dict[TopicPartitionTuple, Answer] = {}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for each in topic.partition_responses:
            leader = each.current_leader
            told[name, each.index] = Answer(
                each.error_code,
                each.base_offset,
                each.log_append_time_ms,
                _explained(each.error_message, [e.batch_index for e in each.record_errors]),
                None if leader.leader_id < 0 else (leader.leader_id, leader.leader_epoch),
            )
    return told


def _explained(message: str | None, records: list[int]) -> str | None:
    if message and records:
        return f"{message} (records {', '.join(map(str, records))} of the batch)"
    return message
