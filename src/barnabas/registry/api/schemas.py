"""/schemas: schemas by id and by guid, wherever they are registered."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.answering import answered, raw
from barnabas.registry.api.asking import number_in_path, state_of
from barnabas.registry.api.written import schema_json
from barnabas.registry.formats import SchemaType
from barnabas.registry.state import Registered


async def get_schema(request: Request) -> Response:
    return answered(request, schema_json(_schema(request).definition))


async def get_schema_text(request: Request) -> Response:
    return raw(request, _schema(request).definition.schema)


async def list_types(request: Request) -> Response:
    return answered(request, [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO])


def _schema(request: Request) -> Registered:
    id_ = number_in_path(request, "id")
    context = state_of(request).context_of(request.query_params.get("subject", ""))
    found = context.by_id.get(id_)
    if found is None:
        raise errors.schema_not_found(id_)
    return found


ROUTES = [
    Route("/schemas/types", list_types, methods=["GET"]),
    Route("/schemas/ids/{id}", get_schema, methods=["GET"]),
    Route("/schemas/ids/{id}/schema", get_schema_text, methods=["GET"]),
]
