"""A registry's client without a registry."""

import pytest
from tests.schema_registry.serdes.answering import AnsweringClient


@pytest.fixture
def client() -> AnsweringClient:
    return AnsweringClient()
