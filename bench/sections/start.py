"""The time of a cold start until the first response, and the memory of an idle broker."""

import time
from typing import Any

from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures

SETTLE_S = 5


def cold_start(broker: BrokerUnderTest, _: Any) -> Figures:
    figures = {"start_s": broker.start_empty()}
    time.sleep(SETTLE_S)
    return figures | {
        "idle_rss_mb": broker.process.rss_mb(),
        "start_cpu_s": broker.process.cpu_s(),
    }


CASES = [Case("cold start", cold_start)]
