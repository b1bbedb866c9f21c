"""Figures of the last minute, as Kafka's sampled statistics give them."""

import math

from barnabas.client.metrics import SampledStat


def test_a_stat_without_values_has_no_average_and_no_rate() -> None:
    window = SampledStat()
    assert math.isnan(window.average(0))
    assert math.isnan(window.max(0))
    assert window.rate(0) == 0


def test_average_and_maximum_are_of_two_samples() -> None:
    window = SampledStat()
    for second, value in ((100, 1), (120, 3), (140, 8)):
        window.record(value, second)
    assert window.average(141) == 4
    assert window.max(141) == 8


def test_values_older_than_the_samples_stay_in_the_total_only() -> None:
    window = SampledStat()
    window.record(100, 0)
    window.record(1, 70)
    assert window.average(71) == 1
    assert window.total == 101


def test_a_rate_covers_at_least_one_sample_of_time() -> None:
    window = SampledStat()
    window.record(300, 10)
    assert window.rate(10) == 10
    window.record(300, 55)
    assert window.rate(60) == 12
