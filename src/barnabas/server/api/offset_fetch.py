"""OffsetFetch (key 9): the committed offsets of groups.

v2 all topics at once; v5 leader epochs; v7 only offsets that no open transaction may change
(KIP-447); v8 several groups at once; v9 member epochs (KIP-848); v10 topics by id.
"""

from collections.abc import Sequence

from barnabas.security.authorizer.model import AclOperation, group_resource
from barnabas.server.api.groups import client_of, in_chunks
from barnabas.server.authorization import is_describable
from barnabas.server.request_context import RequestContext
from barnabas.server.topic_authorization import split_by_permission, split_ids_by_permission
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_BY_ID = 10
FIRST_VERSION_WITH_GROUP_ERRORS = 2


async def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    one_group = context.api_version < FIRST_VERSION_WITH_GROUPS
    requested = [_requested_group(request)] if one_group else request.groups
    if context.broker.authorizer is None:
        groups = await _fetch(requested, request.require_stable, context)
    else:
        groups = await _fetch_allowed(requested, request.require_stable, context)
    if one_group:
        return _single_group_response(request, groups[0], context.api_version)
    return OffsetFetchResponse(groups=groups)


async def _fetch(
    requested: Sequence[OffsetFetchRequestGroup], require_stable: bool, context: RequestContext
) -> list[OffsetFetchResponseGroup]:
    fetch, client = context.broker.groups.fetch, client_of(context)
    return await in_chunks(requested, lambda chunk: fetch(chunk, require_stable, client))


async def _fetch_allowed(
    requested: Sequence[OffsetFetchRequestGroup], require_stable: bool, context: RequestContext
) -> list[OffsetFetchResponseGroup]:
    """Fetches what the client may describe. Of a request for all topics, the others are left out;
    topics that it names are errors."""
    responses: list[OffsetFetchResponseGroup] = []
    allowed: list[OffsetFetchRequestGroup] = []
    rejected: list[list[OffsetFetchResponseTopics] | None] = []
    for group in requested:
        if context.is_allowed(AclOperation.DESCRIBE, group_resource(group.group_id)):
            allowed.append(group)
            rejected.append(_reject_topics(group, context))
        else:
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            responses.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=error))
    fetched = await _fetch(allowed, require_stable, context) if allowed else []
    for response, rejected_topics in zip(fetched, rejected, strict=True):
        if response.error_code != ErrorCode.NONE:
            continue
        if rejected_topics is not None:
            response.topics += rejected_topics
        else:
            response.topics = [
                topic
                for topic in response.topics
                if is_describable(topic.name, context, is_audited=False)
            ]
    return responses + fetched


def _reject_topics(
    group: OffsetFetchRequestGroup, context: RequestContext
) -> list[OffsetFetchResponseTopics] | None:
    """Removes the named topics that the client may not describe from the request.

    Returns the responses for them, or None if all topics are requested.
    """
    if group.topics is None:
        return None
    by_id = context.api_version >= FIRST_VERSION_BY_ID
    split = split_ids_by_permission if by_id else split_by_permission
    group.topics, rejected = split(group.topics, AclOperation.DESCRIBE, context)
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=-1,
                    metadata="",
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in rejected
    ]


def _requested_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """Returns the group of an older request in the form of newer ones."""
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ],
    )


def _single_group_response(
    request: OffsetFetchRequest, group: OffsetFetchResponseGroup, version: int
) -> OffsetFetchResponse:
    if group.error_code != ErrorCode.NONE and version < FIRST_VERSION_WITH_GROUP_ERRORS:
        return OffsetFetchResponse(topics=_error_topics(request, group.error_code))
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _error_topics(request: OffsetFetchRequest, code: int) -> list[OffsetFetchResponseTopic]:
    """The oldest version has error codes of partitions only."""
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, metadata="", error_code=code
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
