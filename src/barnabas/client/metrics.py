"""Figures under the names that Java's clients have for them, as Kafka's perf tests print them."""

from collections import defaultdict
from collections.abc import Mapping

from barnabas import __version__
from barnabas.client.windows import Window
from barnabas.net.counters import Counters

Metrics = dict[str, float | str]
"""By "group:name:{tag=value, ...}"."""


class Sheet:
    """Metrics as they are written down at one moment."""

    def __init__(self, client_id: str, group: str, now_s: float) -> None:
        self.told: Metrics = {}
        self._client_id = client_id
        self._group = group
        self._now_s = now_s

    def put(self, name: str, value: float, group: str | None = None, **tags: object) -> None:
        named = [f"client-id={self._client_id}"]
        named += [f"{tag.replace('_', '-')}={told}" for tag, told in tags.items()]
        self.told[f"{group or self._group}:{name}:{{{', '.join(named)}}}"] = value

    def put_spread(
        self, name: str, window: Window, group: str | None = None, **tags: object
    ) -> None:
        """On average, and the largest."""
        self.put(f"{name}-avg", window.average(self._now_s), group, **tags)
        self.put(f"{name}-max", window.largest(self._now_s), group, **tags)

    def put_rated(
        self, name: str, window: Window, group: str | None = None, **tags: object
    ) -> None:
        """A second, and in all."""
        self.put(f"{name}-rate", window.rate(self._now_s), group, **tags)
        self.put(f"{name}-total", window.total, group, **tags)

    def finish(self, began_s: float) -> Metrics:
        """With what every client tells of itself."""
        tags = f"{{client-id={self._client_id}}}"
        self.told[f"app-info:version:{tags}"] = __version__
        self.told[f"app-info:start-time-ms:{tags}"] = began_s * 1000
        self.told[f"kafka-metrics-count:count:{tags}"] = float(len(self.told) + 1)
        return self.told


class Totals:
    """Rates of what others count: what was added since the last look is taken to be of now."""

    def __init__(self) -> None:
        self._windows: defaultdict[str, Window] = defaultdict(Window)

    def window(self, name: str, total: float, now_s: float) -> Window:
        window = self._windows[name]
        window.record(total - window.total, now_s)
        return window


def put_network(
    sheet: Sheet,
    totals: Totals,
    connections: Mapping[str, tuple[int, Counters]],
    nodes: str,
    now_s: float,
) -> None:
    """What has gone over the connections, by node in the group `nodes` and in all."""
    sums: defaultdict[str, float] = defaultdict(float)
    count = 0
    for node_id, counters in connections.values():
        for name, value in _of_node(counters).items():
            sums[name] += value
            window = totals.window(f"{name} {node_id}", value, now_s)
            sheet.put_rated(name, window, nodes, node_id=f"node-{node_id}")
        sums["connection-creation"] += counters.connects
        sums["connection-close"] += counters.disconnects
        sums["failed-authentication"] += counters.failed_authentications
        count += counters.connections
    sums["network-io"] = sums["request"] + sums["response"]
    sheet.put("connection-count", count)
    for name, value in sums.items():
        sheet.put_rated(name, totals.window(name, value, now_s))


def _of_node(counters: Counters) -> dict[str, float]:
    return {
        "outgoing-byte": counters.bytes_out,
        "incoming-byte": counters.bytes_in,
        "request": counters.requests,
        "response": counters.responses,
    }
