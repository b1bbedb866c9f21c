"""Rates over sliding samples, and the delay that brings a rate back to its bound.

As in Kafka, a rate is measured over a number of samples of fixed length. An idle client has no
samples; its first burst counts as if the earlier samples were empty.
"""

from collections import deque
from typing import Final, NamedTuple


class RateWindow(NamedTuple):
    """How rates are measured: `quota.window.num` and `quota.window.size.seconds`."""

    samples: int = 11
    sample_ms: int = 1000

    @property
    def length_ms(self) -> int:
        return self.samples * self.sample_ms

    @property
    def full_samples_ms(self) -> int:
        """The least time that a rate is measured over."""
        return max(self.samples - 1, 1) * self.sample_ms


DEFAULT_WINDOW: Final = RateWindow()


class _Sample:
    __slots__ = ("count", "last_event_ms", "start_ms", "total")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.last_event_ms = start_ms
        self.total = 0.0
        self.count = 0


class SampledRate:
    """The sum, the average and the rate of the values of the last samples."""

    __slots__ = ("_samples", "_window")

    def __init__(self, window: RateWindow = DEFAULT_WINDOW) -> None:
        self._window = window
        self._samples: deque[_Sample] = deque()  # oldest first

    def record(self, value: float, now_ms: int) -> None:
        """Adds a value; a negative one takes back what was recorded before."""
        self._remove_expired(now_ms)
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._window.sample_ms:
            samples.append(_Sample(now_ms))
        sample = samples[-1]
        sample.total += value
        sample.count += 1
        sample.last_event_ms = max(sample.last_event_ms, now_ms)

    def per_second(self, now_ms: int) -> float:
        """Returns the rate at this time."""
        self._remove_expired(now_ms)
        return 1000 * sum(sample.total for sample in self._samples) / self.measured_ms(now_ms)

    def average(self, now_ms: int) -> float:
        """Returns the average of the recorded values."""
        self._remove_expired(now_ms)
        count = sum(sample.count for sample in self._samples)
        return sum(sample.total for sample in self._samples) / count if count else 0.0

    def measured_ms(self, now_ms: int) -> int:
        """Returns the time that the rate is measured over.

        It begins with the oldest sample. Samples that are missing are added as if they were empty.
        """
        elapsed_ms = now_ms - self._samples[0].start_ms if self._samples else 0
        missing = self._window.samples - 1 - elapsed_ms // self._window.sample_ms
        measured_ms = elapsed_ms + max(missing, 0) * self._window.sample_ms
        return max(measured_ms, self._window.sample_ms)

    def delay_ms(self, bound: float, now_ms: int) -> int:
        """Returns how long to wait until the rate is at its bound; 0 if it is not above."""
        rate = self.per_second(now_ms)
        if rate <= bound:
            return 0
        if bound == 0:
            return self._window.length_ms
        return round((rate - bound) / bound * self.measured_ms(now_ms))

    def _remove_expired(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0].last_event_ms >= self._window.length_ms:
            samples.popleft()
