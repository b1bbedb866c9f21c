"""/contexts: lists and deletes contexts. `path_rewriter` handles longer paths of a context."""

from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry.api.forwarding import handled_by_leader
from barnabas.registry.api.request_parsing import instance_of, state_of
from barnabas.registry.api.responses import json_response, paginate
from barnabas.registry.commands import delete
from barnabas.registry.subjects import QualifiedSubject, context_prefix


async def list_contexts(request: Request) -> Response:
    prefix = request.query_params.get("contextPrefix", "")
    names = sorted(name for name in state_of(request).contexts if name.startswith(prefix))
    return json_response(request, paginate(request, names))


@handled_by_leader
async def delete_context(request: Request) -> Response:
    name = QualifiedSubject.parse(context_prefix(unquote(request.path_params["context"]))).context
    await instance_of(request).write(delete.decide_context, delete.RemoveContext(name))
    return Response(status_code=204)


ROUTES = [
    Route("/contexts", list_contexts, methods=["GET"]),
    Route("/contexts/{context}", delete_context, methods=["DELETE"]),
]
