"""The project's targets for the figures."""

import re
from dataclasses import dataclass
from enum import Enum


class Bound(Enum):
    """How a figure is compared to its target."""

    AT_LEAST_TIMES_KAFKA = "≥ {}x"
    AT_MOST_TIMES_KAFKA = "≤ {}x"
    AT_MOST = "≤ {}"


@dataclass(slots=True, frozen=True)
class Target:
    cases: str
    """A regular expression for the names of the cases."""
    figure: str
    bound: Bound
    value: float

    def __str__(self) -> str:
        return self.bound.value.format(self.value)

    def is_reached(self, kafka: float | None, barnabas: float) -> bool | None:
        """Returns None if Kafka's figure is needed but missing."""
        if self.bound is Bound.AT_MOST:
            return barnabas <= self.value
        if not kafka:
            return None
        if self.bound is Bound.AT_LEAST_TIMES_KAFKA:
            return barnabas >= self.value * kafka
        return barnabas <= self.value * kafka


TARGETS = [
    Target(r"cold start", "start_s", Bound.AT_MOST, 0.5),
    Target(r"cold start", "idle_rss_mb", Bound.AT_MOST, 70),
    Target(r"produce .*16K", "mb_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.15),
    Target(r"produce .*16K", "broker_cpu_s_per_gb", Bound.AT_MOST_TIMES_KAFKA, 0.6),
    Target(r"produce .*256K", "mb_per_s", Bound.AT_LEAST_TIMES_KAFKA, 0.95),
    Target(r"produce .*256K", "broker_cpu_s_per_gb", Bound.AT_MOST_TIMES_KAFKA, 0.9),
    Target(r"produce \d.*|consume \d.*", "rss_mb", Bound.AT_MOST, 120),
    Target(r"compressed produce .*", "mb_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.1),
    Target(r"compressed produce .*", "broker_cpu_s_per_gb", Bound.AT_MOST_TIMES_KAFKA, 0.7),
    Target(r"compressed produce .*", "p99_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"paced 5000.*", "p99_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"consume.*", "mb_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.0),
    Target(r"consume.*", "broker_cpu_s_per_gb", Bound.AT_MOST_TIMES_KAFKA, 0.7),
    Target(r"clean .*", "mb_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.5),
    Target(r"clean .*", "cleaner_cpu_s", Bound.AT_MOST_TIMES_KAFKA, 0.7),
    Target(r"clean .*", "cleaner_rss_mb", Bound.AT_MOST, 166),  # a map of 128 MiB, and 32 MB
    Target(r"producer .* beside a cleaning .*", "p99_times_alone", Bound.AT_MOST, 1.2),
    Target(r"producer .* beside a reader .*", "p99_times_alone", Bound.AT_MOST, 1.5),
    Target(r"producer .* beside a client of .*", "p99_times_alone", Bound.AT_MOST, 1.5),
    Target(r".*busy connections", "cpu_us_per_request", Bound.AT_MOST_TIMES_KAFKA, 0.5),
    Target(r".*busy connections", "requests_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.5),
    Target(r".*partitions a request", "cpu_us_per_request", Bound.AT_MOST_TIMES_KAFKA, 0.6),
    Target(r".* heartbeats of .*", "cpu_us_per_request", Bound.AT_MOST_TIMES_KAFKA, 0.8),
    Target(r"commit, .*", "requests_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.0),
    Target(r"commit, .* partitions .*", "cpu_us_per_request", Bound.AT_MOST_TIMES_KAFKA, 0.8),
    Target(r".* group of \d+: one more", "stable_again_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"transactions of .*", "transactions_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.0),
    Target(r"memory, .* offsets", "start_to_served_s", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"memory, .* offsets", "peak_rss_mb", Bound.AT_MOST, 150),
    Target(r"compacted, .* offsets .*", "start_to_served_s", Bound.AT_MOST_TIMES_KAFKA, 0.5),
    Target(r"create topics one by one", "ms_per_topic", Bound.AT_MOST, 3),
    Target(r"restart, .*", "start_s", Bound.AT_MOST, 1),
    Target(r"kill -9, .* topics", "ms_per_partition", Bound.AT_MOST, 1),
    Target(r".* topics, .* partitions", "start_s", Bound.AT_MOST, 0.5),
    Target(r".* topics, .* partitions", "rss_mb", Bound.AT_MOST, 36),
    Target(r"3 copies: produce .*", "mb_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.0),
    Target(r"3 copies: produce .*", "broker_cpu_s_per_gb", Bound.AT_MOST_TIMES_KAFKA, 0.6),
    Target(r"3 copies: paced .*", "broker_cpu_s_per_gb", Bound.AT_MOST_TIMES_KAFKA, 0.5),
    Target(r"3 copies: paced .*", "median_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"3 copies: paced .*", "p99_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"(kill|clean stop) .*", "longest_gap_s", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"(kill|clean stop) .*", "whole_again_s", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"kill .* controller", "elected_s", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r"kill .* controller", "topic_created_s", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r".* partitions, 3 copies: .*", "led_again_s", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r".* partitions, 3 copies: .*", "batches_of_elections", Bound.AT_MOST, 1),
    Target(r".* partitions, 3 copies: .*", "start_to_led_s", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target(r".* partitions, 3 copies: .*", "idle_cpu_percent", Bound.AT_MOST_TIMES_KAFKA, 1.0),
]


def target_for(case: str, figure: str) -> Target | None:
    for target in TARGETS:
        if target.figure == figure and re.fullmatch(target.cases, case):
            return target
    return None
