"""WriteTxnMarkers (key 27): transactions ended, say their coordinators or an administrator.

v1 flexible; v2 the version of the transaction, by which its epoch is judged (KIP-890).
"""

from collections import defaultdict

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.ports import PartitionErrorCodes
from barnabas.server.request_context import RequestContext
from barnabas.server.transactions.markers import LocalMarkerWriter
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.write_txn_markers import (
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
    participants = LocalMarkerWriter(context.broker)
    answers = [_end(each, participants) for each in request.markers]
    by_producer: defaultdict[int, PartitionErrorCodes] = defaultdict(dict)
    for wanted, answer in zip(request.markers, answers, strict=True):
        by_producer[wanted.producer_id].update(await answer)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_by_topic(outcomes))
            for producer_id, outcomes in by_producer.items()
            if outcomes
        ]
    )


def _end(
    wanted: WritableTxnMarker, participants: LocalMarkerWriter
) -> PendingResponse[PartitionErrorCodes]:
    places = [(topic.name, index) for topic in wanted.topics for index in topic.partition_indexes]
    if wanted.producer_id < 0 or wanted.producer_epoch < 0:
        return PendingResponse.completed(dict.fromkeys(places, ErrorCode.INVALID_REQUEST))
    marker = TransactionMarker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.coordinator_epoch,
        wanted.transaction_result,
        wanted.transaction_version,
    )
    return participants.write_markers(marker, places)


def _by_topic(outcomes: PartitionErrorCodes) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), code in outcomes.items():
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name=name))
        topic.partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
        )
    return list(topics.values())
