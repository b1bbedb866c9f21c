"""What clients push becomes a bounded number of series with bounded names."""

from barnabas.server.telemetry import pushed_metrics
from barnabas.server.telemetry.otlp import MetricPoint
from barnabas.server.telemetry.pushed_metrics import (
    MAX_NAME_CHARACTERS,
    MAX_SERIES_OF_CLIENT,
    MAX_VALUE_CHARACTERS,
    PREFIX,
    PushedMetrics,
)

ONE, TWO = b"1" * 16, b"2" * 16


def gauge(name: str, value: float = 1.0, **labels: str) -> MetricPoint:
    return MetricPoint(name, tuple(labels.items()), value, False, False)


def counter(name: str, value: float, *, is_delta: bool) -> MetricPoint:
    return MetricPoint(name, (), value, True, is_delta)


def pushed(*points: MetricPoint) -> PushedMetrics:
    metrics = PushedMetrics()
    metrics.add(ONE, "app", "one", points)
    return metrics


def series(metrics: PushedMetrics) -> dict[str, float]:
    return {item.name: item.value for item in metrics if item.name.startswith(PREFIX)}


def test_series_have_the_names_of_kafka_and_the_client_as_labels() -> None:
    metrics = pushed(gauge("org.apache.kafka.producer.node.request.latency.avg", 2.5, node_id="1"))
    (found,) = [item for item in metrics if item.name.startswith(PREFIX)]
    assert (found.name, found.value) == (PREFIX + "producer_node_request_latency_avg", 2.5)
    assert found.labels == {"client_id": "app", "client_instance_id": "one", "node_id": "1"}


def test_deltas_are_added_and_cumulative_values_replace() -> None:
    metrics = pushed(counter("a.total", 5, is_delta=True), counter("b", 5, is_delta=False))
    metrics.add(
        ONE, "app", "one", [counter("a.total", 2, is_delta=True), counter("b", 7, is_delta=False)]
    )
    assert series(metrics) == {PREFIX + "a_total": 7, PREFIX + "b_total": 7}


def test_a_gauge_cannot_pass_for_a_counter() -> None:
    assert series(pushed(gauge("a.total"))) == {PREFIX + "a": 1}


def test_the_clients_own_labels_cannot_be_replaced() -> None:
    (found,) = [
        item
        for item in pushed(gauge("a", client_id="x", client_instance_id="y"))
        if item.name.startswith(PREFIX)
    ]
    assert found.labels == {"client_id": "app", "client_instance_id": "one"}


def test_names_and_labels_are_made_valid_and_short() -> None:
    metrics = PushedMetrics()
    labels = {"ö-1": "v" * 1000, "9 a\n": "b"} | {f"l{n}": "" for n in range(50)}
    metrics.add(ONE, "c" * 1000, "one", [gauge("a\nb" * 1000, **labels)])
    (found,) = [item for item in metrics if item.name.startswith(PREFIX)]
    assert found.name.isidentifier()
    assert found.name.isascii()
    assert len(found.name) <= len(PREFIX) + MAX_NAME_CHARACTERS
    assert all(name.isidentifier() and name.isascii() for name in found.labels)
    assert max(map(len, found.labels.values())) == MAX_VALUE_CHARACTERS
    assert len(found.labels) == 14
    assert series(pushed(gauge("..."), gauge(""), gauge("a", float("nan")))) == {}


def test_the_series_of_a_client_and_of_all_are_bounded() -> None:
    metrics = pushed(*(gauge(f"a{n}") for n in range(MAX_SERIES_OF_CLIENT + 5)))
    assert (len(metrics), metrics.dropped_series) == (MAX_SERIES_OF_CLIENT, 5)
    clients = pushed_metrics.MAX_SERIES // MAX_SERIES_OF_CLIENT + 2
    for client in range(clients):
        metrics.add(client.to_bytes(16, "big"), "", "", (gauge(f"a{n}") for n in range(2000)))
    assert len(metrics) == pushed_metrics.MAX_SERIES


def test_the_series_of_a_client_that_is_gone_are_removed() -> None:
    metrics = pushed(gauge("a"))
    metrics.add(TWO, "other", "two", [gauge("a")])
    metrics.remove(ONE)
    metrics.remove(ONE)
    assert [item.labels["client_id"] for item in metrics if item.name == PREFIX + "a"] == ["other"]
    assert len(metrics) == 1
