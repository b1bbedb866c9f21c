"""OffsetCommit (key 8) and OffsetDelete (key 47): change the committed offsets of a group.

A topic that the client may not use is an error of its partitions, and the other topics are
changed.
"""

from barnabas.security.authorizer.model import AclOperation, group_resource
from barnabas.server.api.groups import client_of
from barnabas.server.errors import response_or_error
from barnabas.server.request_context import RequestContext
from barnabas.server.topic_authorization import split_by_permission, split_ids_by_permission
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

FIRST_COMMIT_VERSION_BY_ID = 10


async def commit(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    """OffsetCommit (key 8): commit the offsets of a group.

    v2 the first served; v5 without a retention time; v6 leader epochs; v7 static members;
    v9 member epochs (KIP-848); v10 topics by id.
    """
    groups, client = context.broker.groups, client_of(context)
    if context.broker.authorizer is None:
        return await groups.commit(request, client)
    context.require_allowed(AclOperation.READ, group_resource(request.group_id))
    by_id = context.api_version >= FIRST_COMMIT_VERSION_BY_ID
    split = split_ids_by_permission if by_id else split_by_permission
    request.topics, rejected = split(request.topics, AclOperation.READ, context)
    if not rejected:
        return await groups.commit(request, client)
    response = OffsetCommitResponse()
    if request.topics:
        response = await response_or_error(groups.commit(request, client), request, context)
    response.topics += [
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
                for partition in topic.partitions
            ],
        )
        for topic in rejected
    ]
    return response


async def delete(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """OffsetDelete (key 47): delete offsets of topics without subscribers in the group."""
    groups, client = context.broker.groups, client_of(context)
    if context.broker.authorizer is None:
        return await groups.delete_offsets(request, client)
    context.require_allowed(AclOperation.DELETE, group_resource(request.group_id))
    request.topics, rejected = split_by_permission(request.topics, AclOperation.READ, context)
    if rejected and not request.topics:
        response = OffsetDeleteResponse()
    else:
        response = await groups.delete_offsets(request, client)
    response.topics += [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
                for partition in topic.partitions
            ],
        )
        for topic in rejected
    ]
    return response
