"""Requests that instances of Kafka Connect send each other.

Instances here exchange records of the topics instead, so they send none of these, and serve none:
a worker of Kafka Connect in the same group is not supported, only one that takes over.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.connect.model import RequestFailedError
from barnabas.connect.rest.requests import InvalidBodyError, json_type, parse_json, read_content

_SIGNATURE_HEADERS = ("X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm")


async def put_task_configs(request: Request) -> Response:
    configs = parse_json(await read_content(request))
    if not isinstance(configs, list):
        raise InvalidBodyError(f"The body has to be an array, not {json_type(configs)}")
    raise _error(request)


async def fence(request: Request) -> Response:
    raise _error(request)


def _error(request: Request) -> RequestFailedError:
    if not all(header in request.headers for header in _SIGNATURE_HEADERS):
        return RequestFailedError(400, "Internal request missing required signature")
    return RequestFailedError(
        403, "Workers of Kafka Connect cannot be in a group with instances of Barnabas"
    )


ROUTES = [
    Route("/connectors/{connector}/tasks", put_task_configs, methods=["POST"]),
    Route("/connectors/{connector}/fence", fence, methods=["PUT"]),
]
