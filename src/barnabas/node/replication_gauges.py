"""What a scrape is told of following other brokers, by the names of Kafka's metrics."""

from collections.abc import Iterator

from barnabas.replication.following.fetchers import Fetchers
from barnabas.server.metrics import Gauge

_PREFIX = "kafka_server_replicafetchermanager_"
_CLIENT = {"clientId": "Replica"}


class ReplicationGauges:
    def __init__(self, fetchers: Fetchers) -> None:
        self._fetchers = fetchers

    def __iter__(self) -> Iterator[Gauge]:
        fetchers = self._fetchers
        yield Gauge(_PREFIX + "maxlag", fetchers.max_lag, _CLIENT)
        yield Gauge(_PREFIX + "failedpartitionscount", fetchers.failed_count, _CLIENT)
        yield Gauge(
            "kafka_server_brokertopicmetrics_replicationbytesin_total", fetchers.received_bytes
        )
