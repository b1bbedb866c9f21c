"""From nothing to the first answer, and what the broker weighs when it has nothing to do."""

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
