"""Fixtures of databases."""

from collections.abc import Iterator

import pytest
from tests.connect.connectors.jdbc.databases import database
from tests.connect.postgres_server import postgres_server

from barnabas.connect.connectors.jdbc.database import close_idle_connections

__all__ = ["database", "postgres_server"]


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    close_idle_connections()
