"""/contexts: which there are. A path behind `/contexts/{name}` is about that context: `paths`."""

from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry.api.answering import answered
from barnabas.registry.api.asking import instance_of, state_of
from barnabas.registry.api.forwarding import by_the_writer
from barnabas.registry.api.paging import page
from barnabas.registry.commands import remove_context
from barnabas.registry.naming import Subject, context_prefix


async def list_contexts(request: Request) -> Response:
    prefix = request.query_params.get("contextPrefix", "")
    names = sorted(name for name in state_of(request).contexts if name.startswith(prefix))
    return answered(request, page(request, names))


@by_the_writer
async def delete_context(request: Request) -> Response:
    name = Subject.parse(context_prefix(unquote(request.path_params["context"]))).context
    await instance_of(request).write(remove_context.decide, remove_context.RemoveContext(name))
    return Response(status_code=204)


ROUTES = [
    Route("/contexts", list_contexts, methods=["GET"]),
    Route("/contexts/{context}", delete_context, methods=["DELETE"]),
]
