"""The APIs that create, extend and delete topics, at a controller.

A topic that a client may not use is an error of that topic, and the other topics are changed.
"""

from collections import Counter
from collections.abc import Iterable

from barnabas.security.authorizer.model import (
    CLUSTER,
    AclOperation,
    ResourceType,
    topic_resource,
)
from barnabas.server.authorization import denied
from barnabas.server.controller_api.controller_requests import decide
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.uuid import ZERO, to_text

FIRST_VERSION_WITH_POLICY_ERROR = 3


async def create_topics(
    request: CreateTopicsRequest, context: RequestContext
) -> CreateTopicsResponse:
    """CreateTopics (key 19); see `barnabas.controller.create_topics`.

    The settings of a new topic are returned to clients that may describe them.
    """
    if context.broker.authorizer is None:
        response: CreateTopicsResponse = await decide(request, context)
        return response
    rejected: set[str] = set()
    if not context.is_allowed(AclOperation.CREATE, CLUSTER, is_audited=False):
        names = (topic.name for topic in request.topics)
        rejected = _not_allowed(AclOperation.CREATE, names, context)
    allowed = CreateTopicsRequest(
        topics=[topic for topic in request.topics if topic.name not in rejected],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    response = await decide(allowed, context)
    for result in response.topics:
        if result.error_code == ErrorCode.NONE:
            _hide_configs(result, context)
    error = denied(ResourceType.TOPIC)
    response.topics += [
        CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)
        for name in rejected
    ]
    return response


async def create_partitions(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    """CreatePartitions (key 37); see `barnabas.controller.create_partitions`."""
    if context.broker.authorizer is None:
        response: CreatePartitionsResponse = await decide(request, context)
        return response
    rejected = _not_allowed(AclOperation.ALTER, (topic.name for topic in request.topics), context)
    allowed = CreatePartitionsRequest(
        topics=[topic for topic in request.topics if topic.name not in rejected],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    response = await decide(allowed, context)
    error = denied(ResourceType.TOPIC)
    response.results += [
        CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)
        for name in rejected
    ]
    return response


async def delete_topics(
    request: DeleteTopicsRequest, context: RequestContext
) -> DeleteTopicsResponse:
    """DeleteTopics (key 20), unless the settings of this controller forbid it."""
    if not context.controller_node.settings["delete.topic.enable"]:
        if context.api_version < FIRST_VERSION_WITH_POLICY_ERROR:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED,
            "Topic deletion is disabled: set delete.topic.enable=true to allow it.",
        )
    if context.is_allowed(AclOperation.DELETE, CLUSTER, is_audited=False):
        response: DeleteTopicsResponse = await decide(request, context)
        return response
    allowed, rejected = _split_deletions(request, context)
    response = await decide(allowed, context)
    response.responses += rejected
    return response


def _not_allowed(
    operation: AclOperation, names: Iterable[str], context: RequestContext
) -> set[str]:
    """Returns the topics that the client may not use. One that is named twice is an error of its
    own, which the controller reports."""
    return {
        name
        for name, mentions in Counter(names).items()
        if mentions == 1 and not context.is_allowed(operation, topic_resource(name))
    }


def _hide_configs(result: CreatableTopicResult, context: RequestContext) -> None:
    """Removes the settings of a new topic, if the client may not describe them."""
    resource = topic_resource(result.name)
    if not context.is_allowed(AclOperation.DESCRIBE_CONFIGS, resource, is_audited=False):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = -1
        result.configs = []


def _split_deletions(
    request: DeleteTopicsRequest, context: RequestContext
) -> tuple[DeleteTopicsRequest, list[DeletableTopicResult]]:
    """Returns the request without the topics that the client may not delete, and their errors."""
    topics = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    mentions = Counter((topic.name, topic.topic_id) for topic in topics)
    allowed: list[DeleteTopicState] = []
    rejected: list[DeletableTopicResult] = []
    for topic in topics:
        is_duplicate = mentions[topic.name, topic.topic_id] > 1
        error = None if is_duplicate else _deletion_error(topic, context)
        if error is None:
            allowed.append(topic)
        else:
            rejected.append(error)
    return DeleteTopicsRequest(topics=allowed, timeout_ms=request.timeout_ms), rejected


def _deletion_error(
    requested: DeleteTopicState, context: RequestContext
) -> DeletableTopicResult | None:
    """Returns the error of a topic that the client may not delete, or None if it may.

    It does not tell a client that may not describe a topic whether that exists, or its name. A
    topic that the image does not have yet may be one that the controller is creating.
    """
    error = denied(ResourceType.TOPIC)
    result = DeletableTopicResult(
        name=requested.name,
        topic_id=requested.topic_id,
        error_code=error.code,
        error_message=error.message,
    )
    topics = context.broker.image.topics
    if requested.name is not None:
        if requested.topic_id != ZERO:
            return None  # both a name and an id: the controller reports it
        resource = topic_resource(requested.name)
        if not context.is_allowed(AclOperation.DESCRIBE, resource):
            return result
        topic = topics.by_name(requested.name)
    else:
        topic = topics.by_id(requested.topic_id)
    if topic is None:
        return _unknown_topic_error(requested, context)
    resource = topic_resource(topic.name)
    if context.is_allowed(AclOperation.DELETE, resource):
        return None
    if context.is_allowed(AclOperation.DESCRIBE, resource, is_audited=False):
        result.name = topic.name
    return result


def _unknown_topic_error(
    requested: DeleteTopicState, context: RequestContext
) -> DeletableTopicResult | None:
    """Returns the error of a topic that the image does not have; None if the client may delete it,
    or if the controller reports that there is neither a name nor an id."""
    result = DeletableTopicResult(name=requested.name, topic_id=requested.topic_id)
    if requested.name is None:
        if requested.topic_id == ZERO:
            return None
        result.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        result.error_message = f"No topic has the id {to_text(requested.topic_id)}."
        return result
    resource = topic_resource(requested.name)
    if context.is_allowed(AclOperation.DELETE, resource, is_audited=False):
        return None
    result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    result.error_message = f"Topic '{requested.name}' does not exist."
    return result
