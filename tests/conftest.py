"""Brokers for every test that needs one, the order of tests, and the way to their own modules."""

import gc
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))  # `tests.conformance.brokers` from any test

from tests.conformance.brokers import BrokerProcess, PeerBroker, peer_is_here
from tests.scheduling import LongestFirst, scheduling_rank

# Nothing fails for being slow; and a commit fails always or never, unless other examples are asked
# for: --hypothesis-profile exploring.
settings.register_profile("exploring", deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("repeatable", settings.get_profile("exploring"), derandomize=True)
settings.load_profile("repeatable")

PROMPT = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
"""Settings that let a group or a transaction move on without a wait, for either broker."""


def pytest_configure(config: pytest.Config) -> None:
    # What a shell runs in the background is deaf to Ctrl-C, and so is all that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # What the client libraries still use is theirs to replace.
    for origin in "kafka", "importlib.resources", "tests.conformance.clients":
        config.addinivalue_line("filterwarnings", f"ignore::DeprecationWarning:{origin}")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=scheduling_rank)


def pytest_collection_finish() -> None:
    gc.freeze()  # ten thousand tests need not be looked through for garbage again and again


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Barnabas, running for the whole session; tests share it and use topics of their own."""
    process = BrokerProcess(tmp_path_factory.mktemp("barnabas"), settings=PROMPT)
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerBroker]:
    """The real Kafka, likewise."""
    if not peer_is_here():
        pytest.skip("the real Kafka is not here: set PEERS to the folder of its script")
    process = PeerBroker(tmp_path_factory.mktemp("kafka"), settings=PROMPT)
    process.start()
    yield process
    process.stop()
