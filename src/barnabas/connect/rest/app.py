"""The application: all resources of the REST API."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.middleware import Middleware

from barnabas.connect.model import Herder
from barnabas.connect.rest import (
    connector_plugins,
    connectors,
    internal,
    lifecycle,
    loggers,
    offsets,
    server_info,
)
from barnabas.connect.rest.middleware import EXCEPTION_HANDLERS, MediaTypes, PathNormalizer

REQUEST_TIMEOUT_S = 90.0
"""How long a request may take, as in Kafka Connect."""


def create_app(
    herder: Herder,
    worker: Mapping[str, str],
    *,
    client_tls: Callable[[], ssl.SSLContext] | None = None,
    timeout_s: float = REQUEST_TIMEOUT_S,
) -> Starlette:
    """`worker` has the settings of the worker, as in its file.

    `client_tls` returns what requests are forwarded with if the leader's URL begins with https.
    """
    resources = (server_info, connectors, lifecycle, offsets, connector_plugins, loggers, internal)
    app = Starlette(
        routes=[route for resource in resources for route in resource.ROUTES],
        middleware=[Middleware(PathNormalizer), Middleware(MediaTypes)],
        exception_handlers=EXCEPTION_HANDLERS,
    )
    app.router.redirect_slashes = False
    app.state.herder = herder
    app.state.worker = dict(worker)
    app.state.client_tls = client_tls
    app.state.timeout_s = timeout_s
    return app
