"""A log directory for each test, and as many as it likes for the laws."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.log.log_test_directory import LogTestDirectory


@pytest.fixture
def log_dir(tmp_path: Path) -> Iterator[LogTestDirectory]:
    log_dir = LogTestDirectory(tmp_path / "data")
    yield log_dir
    log_dir.directory.close(clean=False)


@pytest.fixture(scope="session")
def new_log_dir(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], LogTestDirectory]:
    """Makes a log_dir; hypothesis needs a fresh one for every example."""

    def make() -> LogTestDirectory:
        return LogTestDirectory(tmp_path_factory.mktemp("data"))

    return make
