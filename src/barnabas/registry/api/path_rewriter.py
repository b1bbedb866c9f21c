"""Paths before they are routed: subjects may have slashes in them, and contexts come first.

`/contexts/staging/subjects/a%2Fb` is `/subjects/:.staging:a%2Fb`. Parts of a path stay
percent-encoded until they are read.
"""

from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.registry.api.responses import error_response
from barnabas.registry.subjects import ContextNameError, context_prefix


class PathRewriter:
    """Middleware that puts a path into the form that routes know."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            encoded = scope["raw_path"].decode("latin-1").partition("?")[0]
            try:
                path, query = rewrite_path(encoded, scope["query_string"].decode("latin-1"))
            except ContextNameError as error:
                await error_response(400, 400, str(error))(scope, receive, send)
                return
            scope = {**scope, "path": path, "query_string": query.encode("latin-1")}
        await self._app(scope, receive, send)


def rewrite_path(path: str, query: str) -> tuple[str, str]:
    """A path and a query string without `/contexts/...` in front."""
    parts = [part for part in path.split("/") if part]
    if len(parts) < 3 or parts[0] != "contexts":
        return "/" + "/".join(parts), query
    prefix = context_prefix(unquote(parts[1]))
    parts = parts[2:]
    where = _place_of_subject(parts)
    if where is not None and where < len(parts):
        parts[where] = _qualified(prefix, unquote(parts[where]))
    elif parts[0] in ("config", "mode") and len(parts) == 1 and prefix:
        parts.append(_qualified(prefix, ""))
    elif parts[:2] == ["schemas", "ids"]:
        query = _with_context(query, "subject", prefix)
    elif len(parts) == 1 and parts[0] in ("schemas", "subjects"):
        query = _with_context(query, "subjectPrefix", prefix)
    return "/" + "/".join(parts), query


def _place_of_subject(parts: list[str]) -> int | None:
    if parts[0] in ("subjects", "config", "mode"):
        return 1
    if parts[:2] == ["compatibility", "subjects"]:
        return 2
    return None


def _qualified(prefix: str, subject: str) -> str:
    named = subject if subject.startswith((":.", ":*:")) else prefix + subject
    return quote(named, safe=":")


def _with_context(query: str, name: str, prefix: str) -> str:
    given = dict(parse_qsl(query, keep_blank_values=True))
    value = given.get(name, "")
    given[name] = value if value.startswith((":.", ":*:")) else prefix + value
    return urlencode(given)
