"""The same requests to the real worker and to ours, one after the other on one broker."""

from collections.abc import Callable

import pytest
from tests.conformance.connect import lifecycle
from tests.conformance.connect.lifecycle import Facts
from tests.conformance.connect.workers import BarnabasWorker, ConnectWorker, KafkaWorker

pytestmark = pytest.mark.peer


@pytest.mark.parametrize(
    "run",
    [lifecycle.run_unknown, lifecycle.run_source, lifecycle.run_sink],
    ids=lambda run: run.__name__,
)
def test_responses_are_equal(
    run: Callable[[ConnectWorker, str], Facts],
    kafka_worker: KafkaWorker,
    barnabas_worker: BarnabasWorker,
) -> None:
    topic = run.__name__.replace("_", "-")
    theirs = run(kafka_worker, f"kafka-{topic}")
    ours = run(barnabas_worker, f"barnabas-{topic}")
    differences = {
        name: {"ours": response, "theirs": expected}
        for (name, response), expected in zip(ours.items(), theirs.values(), strict=True)
        if response != expected
    }
    assert differences == {}
