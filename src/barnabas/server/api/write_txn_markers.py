"""WriteTxnMarkers (key 27): transactions ended, say their coordinators or an administrator.

v1 flexible; v2 the version of the transaction, by which its epoch is judged (KIP-890).
"""

from barnabas.coordinator.marker import Marker
from barnabas.server.call import Call
from barnabas.server.markers import LocalParticipants
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


async def handle(request: WriteTxnMarkersRequest, call: Call) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(markers=[await _write(each, call) for each in request.markers])


async def _write(wanted: WritableTxnMarker, call: Call) -> WritableTxnMarkerResult:
    marker = Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.coordinator_epoch,
        wanted.transaction_result,
        wanted.transaction_version,
    )
    places = [(topic.name, index) for topic in wanted.topics for index in topic.partition_indexes]
    codes = await LocalParticipants(call.broker).end(marker, places)
    return WritableTxnMarkerResult(
        producer_id=wanted.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[topic.name, index]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in wanted.topics
        ],
    )
