"""DeleteTopics (key 20): by name; from v6 by name or by id.

v3 reports TOPIC_DELETION_DISABLED instead of INVALID_REQUEST; v5 adds error messages.
"""

from collections import Counter

from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import RemoveTopicRecord
from barnabas.wire.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.schema import Message
from barnabas.wire.uuid import ZERO, to_text


def decide(
    request: DeleteTopicsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    if not context.resolver.broker("delete.topic.enable"):
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this broker."
        )
    mentions = Counter((topic.name, topic.topic_id) for topic in _requested_topics(request))
    topics: dict[tuple[str | None, bytes], TopicImage] = {}
    results = []
    for (name, topic_id), count in mentions.items():
        try:
            if count > 1:
                raise _invalid(f"Duplicate topic {'id' if name is None else 'name'}.")
            topics[name, topic_id] = _find_topic(name, topic_id, image)
        except KafkaError as error:
            results.append(_result(name, topic_id, error))
    counts = Counter(topic.topic_id for topic in topics.values())
    records: list[Message] = []
    for (name, topic_id), topic in topics.items():
        if counts[topic.topic_id] > 1:
            both = _invalid("The provided topic name maps to an ID that was already supplied.")
            results.append(_result(name, topic_id, both))
            continue
        try:
            context.record_mutations(len(topic.partitions))
        except KafkaError as error:
            results.append(_result(name, topic_id, error))
            continue
        records.append(RemoveTopicRecord(topic_id=topic.topic_id))
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
    require_record_limit(records)
    return Decision(records, DeleteTopicsResponse(responses=results))


def _requested_topics(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


def _find_topic(name: str | None, topic_id: bytes, image: MetadataImage) -> TopicImage:
    if name is not None:
        if topic_id != ZERO:
            raise _invalid("You may not specify both topic name and topic id.")
        topic = image.topics.by_name(name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist."
            )
        return topic
    if topic_id == ZERO:
        raise _invalid("Neither topic name nor id were specified.")
    topic = image.topics.by_id(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"No topic has the id {to_text(topic_id)}.")
    return topic


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _result(name: str | None, topic_id: bytes, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
    )
