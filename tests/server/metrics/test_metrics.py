"""Metrics, and their text for Prometheus."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.server.harness import a_broker, on_a_loop

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration, PartitionRegistration, TopicImage
from barnabas.server.metrics.exposition import Exposition, quantile_of
from barnabas.server.metrics.gauges import BrokerGauges, ControllerGauges
from barnabas.server.metrics.http_endpoint import MAX_REQUEST_BYTES, HttpEndpoint
from barnabas.server.metrics.registry import Gauge, Histogram, MetricsRegistry


@given(st.lists(st.integers(0, 2**50), min_size=1), st.floats(0.01, 0.999))
def test_a_quantile_is_within_a_power_of_two_of_the_truth(
    values: list[int], fraction: float
) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    estimate = quantile_of(histogram.buckets, fraction)
    rank = -(-fraction * len(values) // 1)
    truth = sorted(values)[int(rank) - 1]
    assert truth / 2 <= estimate <= 2 * truth
    assert histogram.count == len(values)
    assert histogram.total == sum(values)


def test_a_deleted_topic_stays_in_the_sum_over_all() -> None:
    metrics = MetricsRegistry()
    metrics.topic("a").bytes_in += 5
    metrics.topic("b").bytes_in += 7
    metrics.remove_topic("a")
    metrics.remove_topic("never there")
    assert list(metrics.topics()) == ["b"]
    assert metrics.all_topics().bytes_in == 12


def a_troubled_image() -> MetadataImage:
    """Broker 1 leads two partitions: one lacks a replica, the other has too few in sync."""
    image = MetadataImage()
    states = {
        0: PartitionRegistration((1, 2, 3), (1, 2), 1, 0, 0, ()),
        1: PartitionRegistration((2, 1, 3), (1,), 1, 1, 1, (), adding=(3,)),
        2: PartitionRegistration((2, 3), (), -1, 2, 2, ()),
    }
    image.topics.add(TopicImage("t", b"t" * 16, states))
    for broker_id in (1, 2, 3):
        image.brokers[broker_id] = BrokerRegistration(
            broker_id, 1, b"", (), {}, None, broker_id == 2, False, ()
        )
    return image


def what_a_broker_counts() -> MetricsRegistry:
    broker = a_broker()
    log = SimpleNamespace(size_bytes=100, log_start_offset=3, log_end_offset=9)
    partition = SimpleNamespace(topic="t", index=0, log=log, error_code=None)
    log_dirs = SimpleNamespace(offline_paths=["one"])
    broker.partitions = SimpleNamespace(  # type: ignore[assignment]
        opened=lambda: [partition],
        log_dirs=log_dirs,
        alter_partition_manager=SimpleNamespace(expanded=4, shrunk=5, failed=6),
    )
    broker.image = a_troubled_image()
    least = {"min.insync.replicas": 2}
    broker.resolver = SimpleNamespace(topic=lambda _: least)  # type: ignore[assignment]
    fetch = broker.metrics.request("Fetch")
    fetch.requests[12] = 3
    fetch.errors[0] += 2
    fetch.errors[6] += 1
    for milliseconds in (1, 2, 40):
        fetch.total_ns.observe(milliseconds * 1_000_000)
        fetch.local_ns.observe(100_000)
    fetch.remote_ns.observe(40_000_000)
    broker.metrics.topic("t").messages_in = 11
    broker.metrics.register([Gauge("kafka_server_kafkaserver_brokerstate", 3)])
    broker.metrics.register(BrokerGauges(broker))
    return broker.metrics


def samples(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_a_scrape_has_kafkas_metrics_under_their_usual_names() -> None:
    entry: dict[Any, float] = {}

    @on_a_loop
    async def scenario() -> None:
        entry.update(samples(await Exposition(what_a_broker_counts(), now_s=lambda: 0.0).text()))

    scenario()

    def value(name: str, **labels: str) -> float:
        return entry[name, frozenset(labels.items())]

    requests = "kafka_network_requestmetrics_"
    assert value(requests + "requests_total", request="Fetch", version="12") == 3
    assert value(requests + "requests_total", request="FetchConsumer", version="12") == 3
    assert value(requests + "errors_total", request="Fetch", error="NONE") == 2
    assert value(requests + "errors_total", request="Fetch", error="NOT_LEADER_OR_FOLLOWER") == 1
    assert value(requests + "totaltimems_count", request="Fetch") == 3
    assert value(requests + "totaltimems_sum", request="Fetch") == 43
    assert 20 < value(requests + "totaltimems", request="Fetch", quantile="0.99") < 80
    assert value(requests + "remotetimems_count", request="Fetch") == 3
    assert value(requests + "remotetimems", request="Fetch", quantile="0.50") == 0
    assert value(requests + "remotetimems", request="Fetch", quantile="0.99") > 20
    assert value("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 11
    assert value("kafka_server_brokertopicmetrics_messagesin_total") == 11
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert value(purgatory, delayedOperation="Fetch") == 0
    assert value("kafka_log_log_size", topic="t", partition="0") == 100
    assert value("kafka_log_log_logendoffset", topic="t", partition="0") == 9
    assert value("kafka_log_logmanager_offlinelogdirectorycount") == 1
    replicas = "kafka_server_replicamanager_"
    assert value(replicas + "partitioncount") == 2
    assert value(replicas + "leadercount") == 2
    assert value(replicas + "underreplicatedpartitions") == 2
    assert value(replicas + "underminisrpartitioncount") == 1
    assert value(replicas + "atminisrpartitioncount") == 1
    assert value(replicas + "reassigningpartitions") == 1
    assert value(replicas + "isrexpands_total") == 4
    assert value(replicas + "isrshrinks_total") == 5
    assert value(replicas + "failedisrupdates_total") == 6
    assert value("kafka_server_kafkaserver_brokerstate") == 3
    assert value("process_resident_memory_bytes") > 1_000_000


def test_every_controller_counts_brokers_and_partitions() -> None:
    node: Any = SimpleNamespace(
        image=a_troubled_image(), controller=SimpleNamespace(is_active=False)
    )
    prefix = "kafka_controller_kafkacontroller_"
    assert {item.name.removeprefix(prefix): item.value for item in ControllerGauges(node)} == {
        "activecontrollercount": 0,
        "activebrokercount": 2,
        "fencedbrokercount": 1,
        "globaltopiccount": 1,
        "globalpartitioncount": 3,
        "offlinepartitionscount": 1,
        "preferredreplicaimbalancecount": 2,
        "lastappliedrecordoffset": -1,
    }


async def exchange(request: bytes) -> tuple[str, bytes]:
    """Returns the status line and the body of one response."""
    endpoint = HttpEndpoint(what_a_broker_counts())
    port = endpoint.bind("127.0.0.1", 0)
    await endpoint.serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    endpoint.close()
    return head.decode().split("\r\n")[0], body


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /health HTTP/1.1", "200 OK"),
        (b"GET /metrics?x=1 HTTP/1.1", "200 OK"),
        (b"HEAD /metrics HTTP/1.1", "200 OK"),
        (b"GET / HTTP/1.1", "404 Not Found"),
        (b"POST /metrics HTTP/1.1", "405 Method Not Allowed"),
        (b"GET /metrics", "400 Bad Request"),
        (b"\x16\x03\x01 hello", "400 Bad Request"),
        (b"GET /health HTTP/2", "400 Bad Request"),
        (b"GET /" + b"x" * MAX_REQUEST_BYTES + b" HTTP/1.1", "431 Request Header Fields Too Large"),
    ],
)
def test_http_requests_receive_their_status(request_line: bytes, status: str) -> None:
    @on_a_loop
    async def scenario() -> None:
        line, body = await exchange(request_line + b"\r\nHost: here\r\n\r\n")
        assert line == f"HTTP/1.1 {status}"
        if request_line.startswith(b"HEAD"):
            assert body == b""
        if request_line.startswith(b"GET /metrics?"):
            assert b"kafka_server_brokertopicmetrics_messagesin_total" in body

    scenario()


@on_a_loop
async def test_an_incomplete_http_request_is_a_bad_request() -> None:
    assert (await exchange(b"GET /health HT"))[0] == "HTTP/1.1 400 Bad Request"


@on_a_loop
async def test_a_family_of_many_series_is_written_in_parts_and_described_once() -> None:
    metrics = MetricsRegistry()
    metrics.register([Gauge("a_total", number, {"n": str(number)}) for number in range(500)])
    text = (await Exposition(metrics, asyncio.get_running_loop().time).text()).decode()
    lines = [line for line in text.splitlines() if " a_total" in line or line[:8] == "a_total{"]
    assert lines[:2] == ["# HELP a_total ", "# TYPE a_total counter"]
    assert lines[2:] == [f'a_total{{n="{number}"}} {number}.0' for number in range(500)]
