"""The REST API: one file a resource. Confluent's paths, parameters and answers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from barnabas.registry.instance import Instance


def application(instance: "Instance") -> "Starlette":
    from starlette.applications import Starlette
    from starlette.middleware import Middleware

    from barnabas.registry.api import (
        about,
        compatibility,
        config,
        contexts,
        mode,
        schemas,
        subjects,
    )
    from barnabas.registry.api.paths import Paths
    from barnabas.registry.api.refusing import HANDLERS, Stopping

    resources = (about, subjects, schemas, config, mode, compatibility, contexts)
    app = Starlette(
        routes=[route for resource in resources for route in resource.ROUTES],
        middleware=[Middleware(Stopping), Middleware(Paths)],
        exception_handlers=HANDLERS,
    )
    app.router.redirect_slashes = False
    app.state.instance = instance
    return app
