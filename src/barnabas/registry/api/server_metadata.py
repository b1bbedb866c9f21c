"""`/` and /v1/metadata: the cluster ids and the version of the server."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas import __version__
from barnabas.registry.api.request_parsing import instance_of
from barnabas.registry.api.responses import json_response


async def root(request: Request) -> Response:
    return json_response(request, {})


async def cluster_id(request: Request) -> Response:
    instance = instance_of(request)
    clusters = {
        "kafka-cluster": instance.kafka_cluster_id,
        "schema-registry-cluster": instance.settings.group_id,
    }
    return json_response(request, {"id": "", "scope": {"path": [], "clusters": clusters}})


async def version(request: Request) -> Response:
    return json_response(request, {"version": __version__, "commitId": ""})


async def deployment(request: Request) -> Response:
    return json_response(request, {"attributes": []})


ROUTES = [
    Route("/", root, methods=["GET", "POST"]),
    Route("/v1/metadata/id", cluster_id, methods=["GET"]),
    Route("/v1/metadata/version", version, methods=["GET"]),
    Route("/v1/metadata/deployment", deployment, methods=["GET"]),
]
