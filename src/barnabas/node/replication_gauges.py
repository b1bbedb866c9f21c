"""What a scrape is told of following other brokers, by the names of Kafka's metrics."""

from collections.abc import Iterator

from barnabas.replication.following.fetchers import Fetchers
from barnabas.server.metrics import Gauge

_ALL = "kafka_server_replicafetchermanager_"
_EACH = "kafka_server_fetcherstats_"
_CLIENT = {"clientId": "Replica"}


class ReplicationGauges:
    def __init__(self, fetchers: Fetchers) -> None:
        self._fetchers = fetchers

    def __iter__(self) -> Iterator[Gauge]:
        fetchers = self._fetchers
        yield Gauge(_ALL + "maxlag", fetchers.max_lag, _CLIENT)
        yield Gauge(_ALL + "failedpartitionscount", fetchers.failed_count, _CLIENT)
        yield Gauge(
            "kafka_server_brokertopicmetrics_replicationbytesin_total", fetchers.received_bytes
        )
        for leader_id, number, fetcher in fetchers.by_leader():
            client = {"clientId": f"ReplicaFetcherThread-{number}-{leader_id}"}
            yield Gauge(_EACH + "requests_total", fetcher.requests, client)
            yield Gauge(_EACH + "bytes_total", fetcher.received_bytes, client)
            for followed in fetcher:
                partition = followed.partition
                labels = {"topic": partition.topic, "partition": f"{partition.index}"}
                yield Gauge(
                    "kafka_server_fetcherlagmetrics_consumerlag", followed.lag, client | labels
                )
