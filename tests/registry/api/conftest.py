"""Ask the shared registry, about a subject that only one test uses."""

from typing import Any

import pytest
from tests.registry.http_requests import Answer, ask

from barnabas.registry.service import SchemaRegistry


class Api:
    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return ask(self._url, method, path, body, named)

    def fine(self, method: str, path: str, body: object = None) -> Any:
        """The content of an answer that is no refusal."""
        answer = self(method, path, body)
        assert answer.status == 200, answer.content
        return answer.json

    def refused(self, method: str, path: str, body: object = None, **headers: str) -> int:
        """The error code."""
        return self(method, path, body, **headers).error_code


@pytest.fixture
def api(schema_registry: SchemaRegistry) -> Api:
    return Api(schema_registry.url)


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).replace("[", "-").replace("]", "").replace("/", "-")
