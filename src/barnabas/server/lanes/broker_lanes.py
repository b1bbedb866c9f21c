"""The lanes of a broker."""

from typing import TYPE_CHECKING

from barnabas.server.lanes._fetch import FetchLane
from barnabas.server.lanes._heartbeat import ConsumerHeartbeatLane, HeartbeatLane
from barnabas.server.lanes._lane import Lane
from barnabas.server.lanes._offset_commit import OffsetCommitLane
from barnabas.server.lanes._produce import ProduceLane
from barnabas.wire.apis import ApiKey

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode


def broker_lanes(broker: "BrokerNode") -> dict[ApiKey, Lane]:
    """Returns the lanes by API. Everything else of the broker is there, but nothing is loaded."""
    metrics = broker.metrics.request
    return {
        ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerHeartbeatLane(
            broker, metrics("ConsumerGroupHeartbeat")
        ),
        ApiKey.FETCH: FetchLane(broker, metrics("Fetch")),
        ApiKey.HEARTBEAT: HeartbeatLane(broker, metrics("Heartbeat")),
        ApiKey.OFFSET_COMMIT: OffsetCommitLane(broker, metrics("OffsetCommit")),
        ApiKey.PRODUCE: ProduceLane(broker, metrics("Produce")),
    }
