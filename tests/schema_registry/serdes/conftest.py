"""A registry's client without a registry."""

import pytest
from tests.schema_registry.serdes.fake_client import AnsweringClient


@pytest.fixture
def client() -> AnsweringClient:
    return AnsweringClient()
