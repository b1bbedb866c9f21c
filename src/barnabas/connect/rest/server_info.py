"""`/` and /health: the version, the Kafka cluster, and whether this instance is ready."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas import __version__
from barnabas.connect.rest.requests import herder_of
from barnabas.connect.rest.responses import json_response

KAFKA_VERSION: Final = "4.3.1"
"""The release whose REST API this is. Clients such as kcctl ask for it before they use a feature,
so it is shown as the version, and ours as the commit."""

_HEALTH_CODES: Final = {"healthy": 200, "starting": 503, "unhealthy": 500}


async def get_server_info(request: Request) -> Response:
    return json_response(
        {
            "version": KAFKA_VERSION,
            "commit": f"barnabas-{__version__}",
            "kafka_cluster_id": herder_of(request).kafka_cluster_id,
        }
    )


async def get_health(request: Request) -> Response:
    status, message = herder_of(request).health
    return json_response({"status": status, "message": message}, _HEALTH_CODES[status])


ROUTES = [
    Route("/", get_server_info, methods=["GET"]),
    Route("/health", get_health, methods=["GET"]),
]
