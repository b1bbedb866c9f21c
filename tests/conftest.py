"""Fixtures of brokers, the order of tests, and the import path of test modules."""

import gc
import logging
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))  # `tests.conformance.brokers` from any test

from tests.conformance.brokers import BrokerProcess, PeerBroker, is_peer_installed
from tests.scheduling import LongestFirst, scheduling_rank

# No test fails because it is slow, and examples are the same in every run; new examples:
# --hypothesis-profile exploring.
settings.register_profile("exploring", deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("repeatable", settings.get_profile("exploring"), derandomize=True)
settings.load_profile("repeatable")

MEMORY = Path("/dev/shm")
FAST_SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
"""Settings without pauses of groups and transactions, for both brokers."""


def pytest_configure(config: pytest.Config) -> None:
    # A background job of a shell ignores SIGINT, and so do the processes that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Deprecated functions that client libraries use.
    for origin in "kafka", "importlib.resources", "tests.conformance.clients":
        config.addinivalue_line("filterwarnings", f"ignore::DeprecationWarning:{origin}")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=scheduling_rank)


def pytest_collection_finish() -> None:
    gc.freeze()  # garbage collection does not need to visit ten thousand tests


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A folder in memory, on machines that have one, for tests that write files many times."""
    within = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="barnabas-", dir=within) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Barnabas for the whole session; tests share it and use their own topics."""
    process = BrokerProcess(tmp_path_factory.mktemp("barnabas"), settings=FAST_SETTINGS)
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerBroker]:
    """The real Kafka for the whole session."""
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    process = PeerBroker(tmp_path_factory.mktemp("kafka"), settings=FAST_SETTINGS)
    process.start()
    yield process
    process.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Undoes what a test changes of loggers: their levels can be set by an API."""
    loggers = logging.root.manager.loggerDict
    before = {name: logger.level for name, logger in loggers.items() if hasattr(logger, "level")}
    root_level, disabled = logging.root.level, logging.root.manager.disable
    result = yield
    logging.root.setLevel(root_level)
    logging.disable(disabled)
    for name, logger in list(loggers.items()):
        if isinstance(logger, logging.Logger) and logger.level != before.get(name, logging.NOTSET):
            logger.setLevel(before.get(name, logging.NOTSET))
    return result
