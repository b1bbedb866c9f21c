"""The REST API: one file a resource. Confluent's paths, parameters and answers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from barnabas.registry.instance import Instance


def application(instance: "Instance") -> "Starlette":
    from starlette.applications import Starlette

    from barnabas.registry.api import schemas, subjects
    from barnabas.registry.api.refusing import HANDLERS

    routes = [*subjects.ROUTES, *schemas.ROUTES]
    app = Starlette(routes=routes, exception_handlers=HANDLERS)
    app.state.instance = instance
    return app
