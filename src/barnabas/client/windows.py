"""Figures over the last minute, kept as Kafka keeps them: in two samples of thirty seconds."""

import math

SAMPLE_S = 30.0
SAMPLES = 2


class Window:
    """What was recorded lately: its average, its largest, its rate; and the total of all time."""

    __slots__ = ("_samples", "total")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []  # the newest last
        self.total = 0.0

    def record(self, value: float, now_s: float, count: int = 1) -> None:
        """A value, or the sum of several."""
        samples = self._samples
        if not samples or now_s - samples[-1].began_s >= SAMPLE_S:
            samples.append(_Sample(now_s))
            del samples[:-SAMPLES]
        samples[-1].add(value, count)
        self.total += value

    def average(self, now_s: float) -> float:
        current = self._current(now_s)
        count = sum(each.count for each in current)
        return sum(each.sum for each in current) / count if count else math.nan

    def largest(self, now_s: float) -> float:
        return max((each.largest for each in self._current(now_s)), default=math.nan)

    def rate(self, now_s: float) -> float:
        """A second. The time is taken to be a sample's at least, or the first ones would leap."""
        current = self._current(now_s)
        if not current:
            return 0.0
        elapsed_s = now_s - current[0].began_s
        missing = SAMPLES - 1 - int(elapsed_s / SAMPLE_S)
        elapsed_s += max(0, missing) * SAMPLE_S
        return sum(each.sum for each in current) / elapsed_s if elapsed_s else 0.0

    def _current(self, now_s: float) -> "list[_Sample]":
        oldest_s = now_s - SAMPLES * SAMPLE_S
        return [each for each in self._samples if each.began_s > oldest_s]


class _Sample:
    __slots__ = ("began_s", "count", "largest", "sum")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.sum = 0.0
        self.count = 0
        self.largest = -math.inf

    def add(self, value: float, count: int) -> None:
        self.sum += value
        self.count += count
        self.largest = max(self.largest, value / count if count else value)
