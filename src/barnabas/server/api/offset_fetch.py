"""OffsetFetch (key 9): the committed offsets of groups.

v2 all topics at once; v5 leader epochs; v7 only offsets that no open transaction may change
(KIP-447); v8 several groups at once; v9 member epochs (KIP-848); v10 topics by id.
"""

from barnabas.server.api.groups import client_of, in_chunks
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_GROUP_ERRORS = 2


async def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    one_group = context.api_version < FIRST_VERSION_WITH_GROUPS
    requested = [_requested_group(request)] if one_group else request.groups
    fetch, is_stable, client = (
        context.broker.groups.fetch,
        request.require_stable,
        client_of(context),
    )
    groups = await in_chunks(requested, lambda chunk: fetch(chunk, is_stable, client))
    if one_group:
        return _single_group_response(request, groups[0], context.api_version)
    return OffsetFetchResponse(groups=groups)


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
