"""The JSON for stats_cb: the main fields of librdkafka's statistics."""

import json
import math
import time
from typing import Any

from barnabas.client.broker_statistics import broker_statistics, traffic_totals
from barnabas.client.cluster import ClusterClient, TopicInfo
from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer.metrics import ProducerMetrics
from barnabas.client.producer.sender import Sender
from barnabas.client.settings import ProducerSettings


def statistics_json(
    settings: ProducerSettings,
    accumulator: RecordAccumulator,
    sender: Sender,
    cluster: ClusterClient,
    metrics: ProducerMetrics,
    started_s: float,
) -> str:
    now_s = time.time()
    brokers = broker_statistics(cluster)
    topics = cluster.metadata.topics
    statistics: dict[str, Any] = {
        "name": f"{settings.client_id}#producer-1",
        "client_id": settings.client_id,
        "type": "producer",
        "ts": round(time.monotonic() * 1e6),
        "time": int(now_s),
        "age": round((now_s - started_s) * 1e6),
        "msg_cnt": accumulator.buffered_records,
        "msg_size": accumulator.buffered_bytes,
        "msg_max": settings.buffer_messages,
        "msg_size_max": settings.buffer_memory,
        "metadata_cache_cnt": len(topics),
        "txmsgs": sum(delivered.records for delivered in metrics.delivered.values()),
        "txmsg_bytes": sum(delivered.bytes for delivered in metrics.delivered.values()),
        **traffic_totals(brokers),
        "brokers": brokers,
        "topics": {name: _topic(topic, metrics) for name, topic in topics.items()},
        "eos": {
            "producer_id": sender.producer.producer_id,
            "producer_epoch": sender.producer.epoch,
        },
    }
    return json.dumps(statistics)


def _topic(topic: TopicInfo, metrics: ProducerMetrics) -> dict[str, Any]:
    average, maximum = metrics.batch_size(time.monotonic())
    return {
        "topic": topic.name,
        "batchsize": {"avg": _rounded(average), "max": _rounded(maximum)},
        "partitions": {
            str(partition.index): {
                "partition": partition.index,
                "leader": partition.leader,
                "txmsgs": metrics.delivered[topic.name, partition.index].records,
                "txbytes": metrics.delivered[topic.name, partition.index].bytes,
            }
            for partition in topic.partitions
        },
    }


def _rounded(value: float) -> int:
    return 0 if math.isnan(value) else round(value)
