"""The JSON that stats_cb is given, in librdkafka's shape: its main fields."""

import json
import math
import time
from typing import Any

from barnabas.client.cluster import Cluster, TopicInfo
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.statistics import Statistics
from barnabas.client.settings import ProducerSettings
from barnabas.net.counters import Counters
from barnabas.wire.apis import ApiKey, api


def statistics_json(
    settings: ProducerSettings,
    accumulator: Accumulator,
    sender: Sender,
    cluster: Cluster,
    figures: Statistics,
    began_s: float,
) -> str:
    now_s = time.time()
    brokers: dict[str, dict[str, Any]] = {}
    for address, (node_id, counters) in cluster.counters.items():
        name = f"{address}/{node_id if node_id >= 0 else 'bootstrap'}"
        brokers[name] = {
            "name": name,
            "nodeid": node_id,
            "nodename": address,
            "source": "learned" if node_id >= 0 else "configured",
            "state": "UP" if counters.connections else "DOWN",
            "outbuf_cnt": 0,
            "waitresp_cnt": counters.unanswered,
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
    known = cluster.metadata.topics
    told: dict[str, Any] = {
        "name": f"{settings.client_id}#producer-1",
        "client_id": settings.client_id,
        "type": "producer",
        "ts": round(time.monotonic() * 1e6),
        "time": int(now_s),
        "age": round((now_s - began_s) * 1e6),
        "msg_cnt": accumulator.held_records,
        "msg_size": accumulator.held_bytes,
        "msg_max": settings.buffer_messages,
        "msg_size_max": settings.buffer_memory,
        "metadata_cache_cnt": len(known),
        "txmsgs": sum(each.records for each in figures.delivered.values()),
        "txmsg_bytes": sum(each.bytes for each in figures.delivered.values()),
        "tx": sum(each["tx"] for each in brokers.values()),
        "tx_bytes": sum(each["txbytes"] for each in brokers.values()),
        "rx": sum(each["rx"] for each in brokers.values()),
        "rx_bytes": sum(each["rxbytes"] for each in brokers.values()),
        "brokers": brokers,
        "topics": {name: _topic(topic, figures) for name, topic in known.items()},
        "eos": {
            "producer_id": sender.identity.producer_id,
            "producer_epoch": sender.identity.epoch,
        },
    }
    return json.dumps(told)


def _latency(counters: Counters) -> dict[str, int]:
    """In microseconds."""
    average = round(counters.latency_s * 1e6 / max(1, counters.responses))
    largest = round(counters.latency_max_s * 1e6)
    return {
        "avg": average,
        "p50": average,
        "p99": largest,
        "max": largest,
        "cnt": counters.responses,
    }


def _topic(topic: TopicInfo, figures: Statistics) -> dict[str, Any]:
    average, largest = figures.batch_size(time.monotonic())
    return {
        "topic": topic.name,
        "batchsize": {"avg": _whole(average), "max": _whole(largest)},
        "partitions": {
            str(each.index): {
                "partition": each.index,
                "leader": each.leader,
                "txmsgs": figures.delivered[topic.name, each.index].records,
                "txbytes": figures.delivered[topic.name, each.index].bytes,
            }
            for each in topic.partitions
        },
    }


def _whole(figure: float) -> int:
    return 0 if math.isnan(figure) else round(figure)
