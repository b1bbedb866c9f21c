from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.nodes import BrokerNode

COMPILED: bool

class HeartbeatLane(Lane):
    def __init__(self, broker: BrokerNode, metrics: RequestMetrics) -> None: ...

class ConsumerHeartbeatLane(Lane):
    def __init__(self, broker: BrokerNode, metrics: RequestMetrics) -> None: ...
