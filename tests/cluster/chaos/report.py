"""The report of a run: the faults, and when clients had no acknowledgements."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.cluster.chaos.observations import Outcome
from tests.cluster.chaos.writers import Writer

SILENCE_S = 0.5
"""A partition without an acknowledgement for longer than this was not available."""
BAR = 40


@dataclass(slots=True)
class Timeline:
    """The events of a run, in seconds since its start."""

    began_s: float = field(default_factory=time.monotonic)
    events: list[tuple[float, str]] = field(default_factory=list)

    def add(self, event: str) -> None:
        self.events.append((time.monotonic() - self.began_s, event))
        print(f"{self.events[-1][0]:7.1f} s  {event}", flush=True)


def report(
    title: str,
    timeline: Timeline,
    writers: Sequence[Writer],
    findings: Sequence[str],
    *,
    denied: Mapping[str, int],
) -> str:
    """Returns the text of the report. `denied` has the errors of clients without permissions."""
    silences = sorted(find_silences(timeline, writers), key=lambda silence: silence[0])
    lines = [f"# {title}", ""]
    lines += ["All invariants hold." if not findings else f"{len(findings)} violations:", ""]
    lines += [f"- {finding}" for finding in findings]
    lines += ["", "## Clients", "", *clients(writers)]
    lines += [f"- denied {name}: {count:,}" for name, count in sorted(denied.items())]
    lines += ["", "## Events", ""]
    happened = [(at_s, event) for at_s, event in timeline.events]
    happened += [
        (at_s, f"  {topic}-{partition}: nothing acknowledged for {length_s:.1f} s")
        for at_s, topic, partition, length_s in silences
    ]
    lines += [f"    {at_s:7.1f} s  {event}" for at_s, event in sorted(happened)]
    lines += ["", "## Acknowledged in each second", "", *throughput(timeline, writers), ""]
    return "\n".join(lines)


def find_silences(
    timeline: Timeline, writers: Sequence[Writer]
) -> list[tuple[float, str, int, float]]:
    """Returns the times and partitions without acknowledgements."""
    times: dict[tuple[str, int], list[float]] = {}
    for writer in writers:
        for acknowledgement in writer.acknowledged:
            times.setdefault((writer.topic, acknowledgement.partition), []).append(
                acknowledgement.at_s
            )
    silences = []
    for (topic, partition), acknowledged in times.items():
        ordered = sorted(acknowledged)
        for before, after in pairwise(ordered):
            if after - before > SILENCE_S:
                silences.append((before - timeline.began_s, topic, partition, after - before))
    return silences


def clients(writers: Sequence[Writer]) -> list[str]:
    lines = []
    for writer in writers:
        line = f"- {writer.name} on {writer.topic}: {len(writer.acknowledged):,} acknowledged"
        if writer.transactions:
            counts = Counter(transaction.outcome for transaction in writer.transactions)
            line += "; transactions " + ", ".join(
                f"{outcome.value} {counts[outcome]:,}" for outcome in Outcome
            )
        lines.append(line)
    return lines


def throughput(timeline: Timeline, writers: Sequence[Writer]) -> list[str]:
    seconds = Counter(
        int(acknowledgement.at_s - timeline.began_s)
        for writer in writers
        for acknowledgement in writer.acknowledged
    )
    most = max(seconds.values(), default=1)
    return [
        f"    {second:5} s {seconds[second]:7,} {'#' * round(BAR * seconds[second] / most)}"
        for second in range(max(seconds, default=0) + 1)
    ]
