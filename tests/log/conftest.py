"""A log directory for each test, and as many as it likes for the laws."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.log.workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    workshop = Workshop(tmp_path / "data")
    yield workshop
    workshop.directory.close(clean=False)


@pytest.fixture(scope="session")
def new_workshop(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Workshop]:
    """Makes a workshop; hypothesis needs a fresh one for every example."""

    def make() -> Workshop:
        return Workshop(tmp_path_factory.mktemp("data"))

    return make
