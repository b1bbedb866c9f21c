"""Metadata (key 3): the brokers, and the leaders of partitions.

v1 controller, racks and internal topics, null means all topics; v2 cluster id; v4 may create
topics; v5 offline replicas; v7 leader epochs; v8 authorized operations; v10 topic ids;
v11 without the cluster's operations; v12 topics requested by id; v13 an error for the whole
response.
"""

from collections.abc import Collection, Iterable

from barnabas.controller.topic_names import is_valid_topic_name
from barnabas.metadata.states import PartitionRegistration, TopicImage
from barnabas.security.authorizer.model import CLUSTER, AclOperation, topic_resource
from barnabas.server.authorization import is_describable
from barnabas.server.cluster_view import (
    ListenerView,
    cluster_operations,
    is_internal,
)
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.uuid import ZERO

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_VERSION_BY_ID = 12
FIRST_VERSION_WITH_LISTENER_ERRORS = 6


async def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    version = context.api_version
    _require_names(request, version)
    denied_creations = await _create_missing(request, context)
    view = ListenerView(context)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in view.reachable(context.broker.node_id)
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.node_id,
        topics=_topics(request, context, view, denied_creations),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def _topics(
    request: MetadataRequest,
    context: RequestContext,
    view: ListenerView,
    denied_creations: Collection[str],
) -> list[MetadataResponseTopic]:
    topics = context.broker.image.topics
    if _requests_all(request, context.api_version):
        return [
            _describe(topic, view, request, context)
            for topic in topics
            if is_describable(topic.name, context, is_audited=False)
        ]
    responses: dict[str | bytes, MetadataResponseTopic] = {}  # a topic named twice is returned once
    for requested in request.topics or ():
        name = _name(requested)
        topic = topics.by_id(requested.topic_id) if name is None else topics.by_name(name)
        topic_name = topic.name if topic is not None else name
        if name in denied_creations or (
            topic_name is not None and not is_describable(topic_name, context)
        ):
            responses[name or requested.topic_id] = _denied(requested, context.api_version)
        elif topic is None:
            responses[name or requested.topic_id] = _missing(requested, request, context)
        else:
            responses[topic.name] = _describe(topic, view, request, context)
    return list(responses.values())


def _requests_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _describe(
    topic: TopicImage, view: ListenerView, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    version = context.api_version
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[
            _partition(index, partition, view, version)
            for index, partition in topic.partitions.items()
        ],
    )
    _add_operations(described, topic.name, request, context)
    return described


def _add_operations(
    described: MetadataResponseTopic, name: str, request: MetadataRequest, context: RequestContext
) -> None:
    if request.include_topic_authorized_operations:
        operations = context.allowed_operations(topic_resource(name))
        described.topic_authorized_operations = operations


def _partition(
    index: int, partition: PartitionRegistration, view: ListenerView, version: int
) -> MetadataResponsePartition:
    error, leader, offline = view.partition(partition)
    if error is ErrorCode.LISTENER_NOT_FOUND and version < FIRST_VERSION_WITH_LISTENER_ERRORS:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline,
    )


def _name(requested: MetadataRequestTopic) -> str | None:
    """Returns the name to look up, or None if there is an id, which takes precedence."""
    return requested.name if requested.topic_id == ZERO else None


def _missing(
    requested: MetadataRequestTopic, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    name = _name(requested)
    if name is None:
        topic_name = None if context.api_version >= FIRST_VERSION_BY_ID else ""
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=topic_name, topic_id=requested.topic_id
        )
    error = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid_topic_name(name)
        else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    missing = MetadataResponseTopic(error_code=error, name=name)
    _add_operations(missing, name, request, context)
    return missing


def _denied(requested: MetadataRequestTopic, version: int) -> MetadataResponseTopic:
    """Returns nothing but what the request has, whether the topic exists or not."""
    name = _name(requested)
    if name is None:
        name = None if version >= FIRST_VERSION_BY_ID else ""
    return MetadataResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=requested.topic_id,
        is_internal=is_internal(name or ""),
    )


def _require_names(request: MetadataRequest, version: int) -> None:
    if version >= FIRST_VERSION_BY_ID or not request.topics:
        return
    if any(topic.name is None or topic.topic_id != ZERO for topic in request.topics):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Metadata v{version} cannot request topics by id; use v{FIRST_VERSION_BY_ID}.",
        )


async def _create_missing(request: MetadataRequest, context: RequestContext) -> Collection[str]:
    """Creates missing topics, if the client and the broker's settings allow it.

    Returns the missing topics that the client may not create.
    """
    broker = context.broker
    if not request.topics or not request.allow_auto_topic_creation:
        return ()
    by_name = broker.image.topics.by_name
    missing = {
        name
        for topic in request.topics
        if (name := _name(topic)) and is_valid_topic_name(name) and by_name(name) is None
    }
    if not missing or not broker.settings["auto.create.topics.enable"]:
        return ()
    denied = _denied_creations(missing, context)
    if missing - denied:
        # Errors need no response of their own: a topic that could not be created is still unknown.
        await broker.auto_topic_creator.create(missing - denied, broker)
    return denied


def _denied_creations(names: Iterable[str], context: RequestContext) -> set[str]:
    """Returns the topics that the client may not describe or not create."""
    if context.broker.authorizer is None:
        return set()
    may_create_all = context.is_allowed(AclOperation.CREATE, CLUSTER, is_audited=False)
    return {
        name
        for name in names
        if not is_describable(name, context)
        or not (may_create_all or context.is_allowed(AclOperation.CREATE, topic_resource(name)))
    }
