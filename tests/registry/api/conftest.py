"""Requests to the shared registry, with a subject that only one test uses."""

from typing import Any

import pytest
from tests.registry.http_requests import HttpResponse, send_request

from barnabas.registry.service import SchemaRegistry


class Api:
    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return send_request(self._url, method, path, body, named)

    def ok(self, method: str, path: str, body: object = None) -> Any:
        """Returns the content of a successful response."""
        response = self(method, path, body)
        assert response.status == 200, response.content
        return response.json

    def error_code(self, method: str, path: str, body: object = None, **headers: str) -> int:
        """Returns the code of an error response."""
        return self(method, path, body, **headers).error_code


@pytest.fixture
def api(schema_registry: SchemaRegistry) -> Api:
    return Api(schema_registry.url)


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).replace("[", "-").replace("]", "").replace("/", "-")
