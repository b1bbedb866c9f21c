"""A compacted log for each test, and a fast folder for tests that open logs many times."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.log.cleaner.cleaner_harness import CleanerHarness
from tests.simulation.world.run import MEMORY


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[CleanerHarness]:
    harness = CleanerHarness(tmp_path / "data")
    yield harness
    harness.kill()


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A folder in memory, on machines that have one."""
    within = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="barnabas-cleaner-", dir=within) as folder:
        yield Path(folder)
