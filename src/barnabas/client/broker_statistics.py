"""The broker statistics of stats_cb, in librdkafka's format, for every client."""

from typing import Any

from barnabas.client.cluster import ClusterClient
from barnabas.net.connection_options import ConnectionCounters
from barnabas.wire.apis import ApiKey, api


def broker_statistics(cluster: ClusterClient) -> dict[str, dict[str, Any]]:
    """Returns the object `brokers`: one entry for each address."""
    brokers = {}
    for address, (node_id, counters) in cluster.counters.items():
        name = f"{address}/{node_id if node_id >= 0 else 'bootstrap'}"
        brokers[name] = {
            "name": name,
            "nodeid": node_id,
            "nodename": address,
            "source": "learned" if node_id >= 0 else "configured",
            "state": "UP" if counters.connections else "DOWN",
            "outbuf_cnt": 0,
            "waitresp_cnt": counters.in_flight,
            "tx": counters.requests,
            "txbytes": counters.bytes_out,
            "req_timeouts": counters.timeouts,
            "rx": counters.responses,
            "rxbytes": counters.bytes_in,
            "connects": counters.connects,
            "disconnects": counters.disconnects,
            "rtt": _latency(counters),
            "throttle": {"avg": counters.throttle_ms, "cnt": counters.throttled},
            "req": {api(ApiKey(key)).name: n for key, n in counters.requests_by_api.items()},
        }
    return brokers


def traffic_totals(brokers: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Returns requests and bytes, summed over all brokers."""
    return {
        total: sum(broker[part] for broker in brokers.values())
        for total, part in (
            ("tx", "tx"),
            ("tx_bytes", "txbytes"),
            ("rx", "rx"),
            ("rx_bytes", "rxbytes"),
        )
    }


def _latency(counters: ConnectionCounters) -> dict[str, int]:
    """Returns latencies in microseconds; percentiles are estimates without a histogram."""
    average = round(counters.latency_s * 1e6 / max(1, counters.responses))
    largest = round(counters.latency_max_s * 1e6)
    return {
        "avg": average,
        "p50": average,
        "p99": largest,
        "max": largest,
        "cnt": counters.responses,
    }
