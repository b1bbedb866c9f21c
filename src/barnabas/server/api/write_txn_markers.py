"""WriteTxnMarkers (key 27): write the markers of transaction coordinators or administrators.

v1 flexible; v2 the transaction version, by which the epoch is checked (KIP-890).
"""

from collections import defaultdict

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.server.transactions.markers import LocalMarkerWriter
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


async def handle(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    if not context.is_allowed(AclOperation.ALTER, CLUSTER, is_audited=False):
        context.require_allowed(AclOperation.CLUSTER_ACTION, CLUSTER)
    writer = LocalMarkerWriter(context.broker)
    responses = [_write_marker(marker, writer) for marker in request.markers]
    by_producer: defaultdict[int, PartitionErrorCodes] = defaultdict(dict)
    for requested, response in zip(request.markers, responses, strict=True):
        by_producer[requested.producer_id].update(await response)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_by_topic(outcomes))
            for producer_id, outcomes in by_producer.items()
            if outcomes
        ]
    )


def _write_marker(
    requested: WritableTxnMarker, writer: LocalMarkerWriter
) -> PendingResponse[PartitionErrorCodes]:
    partitions = [
        (topic.name, index) for topic in requested.topics for index in topic.partition_indexes
    ]
    if requested.producer_id < 0 or requested.producer_epoch < 0:
        return PendingResponse.completed(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
    marker = TransactionMarker(
        requested.producer_id,
        requested.producer_epoch,
        requested.coordinator_epoch,
        requested.transaction_result,
        requested.transaction_version,
    )
    return writer.write_markers(marker, partitions)


def _by_topic(outcomes: PartitionErrorCodes) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), code in outcomes.items():
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name=name))
        topic.partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
        )
    return list(topics.values())
