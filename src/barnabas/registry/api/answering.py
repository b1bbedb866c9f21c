"""Answers: JSON, in the content type that was asked for."""

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

PREFERRED = "application/vnd.schemaregistry.v1+json"
_WRITTEN = (PREFERRED, "application/vnd.schemaregistry+json", "application/json")


def answered(request: Request, content: Any, status: int = 200) -> Response:
    return Response(_json(content), status, media_type=accepted_type(request))


def raw(request: Request, text: str) -> Response:
    """A schema by itself, not inside a JSON string."""
    return Response(text, media_type=accepted_type(request))


def refused(status: int, error_code: int, message: str) -> Response:
    """Whatever was asked for: who cannot read it still has the status."""
    content = {"error_code": error_code, "message": message}
    return Response(_json(content), status, media_type=PREFERRED)


def accepted_type(request: Request) -> str:
    """The best of those that the request accepts; 406 if it accepts none."""
    accept = request.headers.get("accept", "")
    if not accept.strip():
        return PREFERRED
    ranges = sorted(map(_media_range, accept.split(",")), key=lambda each: -each[1])
    for wanted, quality in ranges:
        for ours in _WRITTEN:
            if quality > 0 and wanted in (ours, "*/*", "application/*"):
                return ours
    raise HTTPException(406)


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip() for part in text.split(";"))
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return name.lower(), float(quality)
    except ValueError:
        return name.lower(), 0.0


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
