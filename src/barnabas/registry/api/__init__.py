"""Confluent's REST API: one module for each resource, and what they share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from barnabas.registry.client_sessions import ClientSessions
    from barnabas.registry.instance import RegistryInstance


def create_application(
    instance: "RegistryInstance", sessions: "ClientSessions | None" = None
) -> "Starlette":
    """Without `sessions`, clients need no login and may do everything."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware

    from barnabas.registry.api import (
        compatibility,
        schemas,
        scope_settings,
        server_metadata,
        subjects,
    )
    from barnabas.registry.api.access import AuthenticationMiddleware
    from barnabas.registry.api.middleware import HANDLERS, PathRewriter, ShutdownMiddleware

    resources = (server_metadata, subjects, schemas, scope_settings, compatibility)
    app = Starlette(
        routes=[route for resource in resources for route in resource.ROUTES],
        middleware=[
            Middleware(ShutdownMiddleware),
            Middleware(
                AuthenticationMiddleware,
                sessions=sessions,
                listener=instance.settings.listener,
            ),
            Middleware(PathRewriter),
        ],
        exception_handlers=HANDLERS,
    )
    app.router.redirect_slashes = False
    app.state.instance = instance
    return app
