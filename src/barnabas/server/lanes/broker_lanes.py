"""The lanes of a broker."""

from typing import TYPE_CHECKING

from barnabas.server.lanes._fetch import FetchLane
from barnabas.server.lanes._lane import Lane
from barnabas.server.lanes._produce import ProduceLane
from barnabas.wire.apis import ApiKey

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode


def broker_lanes(broker: "BrokerNode") -> dict[ApiKey, Lane]:
    """Returns the lanes by API. Everything else of the broker is there, but nothing is loaded."""
    metrics = broker.metrics.request
    return {
        ApiKey.FETCH: FetchLane(broker, metrics("Fetch")),
        ApiKey.PRODUCE: ProduceLane(broker, metrics("Produce")),
    }
