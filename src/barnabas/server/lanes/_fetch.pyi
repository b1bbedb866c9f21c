from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.nodes import BrokerNode

class FetchLane(Lane):
    def __init__(self, broker: BrokerNode, metrics: RequestMetrics) -> None: ...
