"""A registry client without a registry."""

import pytest
from tests.schema_registry.serdes.fake_client import FakeRegistryClient


@pytest.fixture
def client() -> FakeRegistryClient:
    return FakeRegistryClient()
