"""The JSON that stats_cb is given, in librdkafka's shape: its main fields."""

import json
import math
import time
from typing import Any

from barnabas.client.broker_statistics import broker_statistics, traffic_totals
from barnabas.client.cluster import Cluster, TopicInfo
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.statistics import Statistics
from barnabas.client.settings import ProducerSettings


def statistics_json(
    settings: ProducerSettings,
    accumulator: Accumulator,
    sender: Sender,
    cluster: Cluster,
    figures: Statistics,
    began_s: float,
) -> str:
    now_s = time.time()
    brokers = broker_statistics(cluster)
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
        **traffic_totals(brokers),
        "brokers": brokers,
        "topics": {name: _topic(topic, figures) for name, topic in known.items()},
        "eos": {
            "producer_id": sender.identity.producer_id,
            "producer_epoch": sender.identity.epoch,
        },
    }
    return json.dumps(told)


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
