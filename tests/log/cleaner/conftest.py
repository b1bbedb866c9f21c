"""A compacted log for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.log.cleaner.cleaner_harness import CleanerHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[CleanerHarness]:
    harness = CleanerHarness(tmp_path / "data")
    yield harness
    harness.kill()
