"""Client metrics under the names of Java's clients, as Kafka's performance tests print them.

Averages, maxima and rates cover the last minute, in two samples of thirty seconds as in Kafka.
"""

import math
from collections import defaultdict
from collections.abc import Mapping

from barnabas import __version__
from barnabas.net.connection_options import ConnectionCounters

SAMPLE_S = 30.0
SAMPLES = 2

Metrics = dict[str, float | str]
"""By "group:name:{tag=value, ...}"."""


class SampledStat:
    """Average, maximum and rate of the values recorded lately, and the total of all values."""

    __slots__ = ("_samples", "total")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []  # the newest last
        self.total = 0.0

    def record(self, value: float, now_s: float, count: int = 1) -> None:
        """Add a value, or the sum of `count` values."""
        samples = self._samples
        if not samples or now_s - samples[-1].started_s >= SAMPLE_S:
            samples.append(_Sample(now_s))
            del samples[:-SAMPLES]
        samples[-1].add(value, count)
        self.total += value

    def average(self, now_s: float) -> float:
        current = self._current(now_s)
        count = sum(sample.count for sample in current)
        return sum(sample.sum for sample in current) / count if count else math.nan

    def max(self, now_s: float) -> float:
        return max((sample.max for sample in self._current(now_s)), default=math.nan)

    def rate(self, now_s: float) -> float:
        """Returns the rate per second.

        As in Kafka, samples that do not exist yet count as elapsed time: otherwise the rate would
        be far too high right after the start.
        """
        current = self._current(now_s)
        if not current:
            return 0.0
        elapsed_s = now_s - current[0].started_s
        missing = SAMPLES - 1 - int(elapsed_s / SAMPLE_S)
        elapsed_s += max(0, missing) * SAMPLE_S
        return sum(sample.sum for sample in current) / elapsed_s if elapsed_s else 0.0

    def _current(self, now_s: float) -> "list[_Sample]":
        oldest_s = now_s - SAMPLES * SAMPLE_S
        return [sample for sample in self._samples if sample.started_s > oldest_s]


class _Sample:
    __slots__ = ("count", "max", "started_s", "sum")

    def __init__(self, started_s: float) -> None:
        self.started_s = started_s
        self.sum = 0.0
        self.count = 0
        self.max = -math.inf

    def add(self, value: float, count: int) -> None:
        self.sum += value
        self.count += count
        self.max = max(self.max, value / count if count else value)


class MetricsBuilder:
    """Collects the metrics of one client at one moment."""

    def __init__(self, client_id: str, group: str, now_s: float) -> None:
        self.metrics: Metrics = {}
        self._client_id = client_id
        self._group = group
        self._now_s = now_s

    def put(self, name: str, value: float, group: str | None = None, **tags: object) -> None:
        labels = [f"client-id={self._client_id}"]
        labels += [f"{tag.replace('_', '-')}={label}" for tag, label in tags.items()]
        self.metrics[f"{group or self._group}:{name}:{{{', '.join(labels)}}}"] = value

    def put_avg_max(
        self, name: str, stat: SampledStat, group: str | None = None, **tags: object
    ) -> None:
        self.put(f"{name}-avg", stat.average(self._now_s), group, **tags)
        self.put(f"{name}-max", stat.max(self._now_s), group, **tags)

    def put_rate_total(
        self, name: str, stat: SampledStat, group: str | None = None, **tags: object
    ) -> None:
        self.put(f"{name}-rate", stat.rate(self._now_s), group, **tags)
        self.put(f"{name}-total", stat.total, group, **tags)

    def finish(self, started_s: float) -> Metrics:
        """Adds the metrics that every client has, and returns all of them."""
        tags = f"{{client-id={self._client_id}}}"
        self.metrics[f"app-info:version:{tags}"] = __version__
        self.metrics[f"app-info:start-time-ms:{tags}"] = started_s * 1000
        self.metrics[f"kafka-metrics-count:count:{tags}"] = float(len(self.metrics) + 1)
        return self.metrics


class CounterRates:
    """Rates of counters that only count up: the growth since the last look counts as of now."""

    def __init__(self) -> None:
        self._stats: defaultdict[str, SampledStat] = defaultdict(SampledStat)

    def stat(self, name: str, total: float, now_s: float) -> SampledStat:
        stat = self._stats[name]
        stat.record(total - stat.total, now_s)
        return stat


def put_network_metrics(
    builder: MetricsBuilder,
    rates: CounterRates,
    connections: Mapping[str, tuple[int, ConnectionCounters]],
    node_group: str,
    now_s: float,
) -> None:
    """Adds the traffic of the connections: per node in the group `node_group`, and in total."""
    sums: defaultdict[str, float] = defaultdict(float)
    count = 0
    for node_id, counters in connections.values():
        for name, value in _node_counters(counters).items():
            sums[name] += value
            stat = rates.stat(f"{name} {node_id}", value, now_s)
            builder.put_rate_total(name, stat, node_group, node_id=f"node-{node_id}")
        sums["connection-creation"] += counters.connects
        sums["connection-close"] += counters.disconnects
        sums["failed-authentication"] += counters.failed_authentications
        count += counters.connections
    sums["network-io"] = sums["request"] + sums["response"]
    builder.put("connection-count", count)
    for name, value in sums.items():
        builder.put_rate_total(name, rates.stat(name, value, now_s))


def _node_counters(counters: ConnectionCounters) -> dict[str, float]:
    return {
        "outgoing-byte": counters.bytes_out,
        "incoming-byte": counters.bytes_in,
        "request": counters.requests,
        "response": counters.responses,
    }
