"""`offset` and `limit`: no answer lists more than so many."""

from collections.abc import Sequence
from typing import TypeVar

from starlette.requests import Request

from barnabas.registry.api.asking import number

T = TypeVar("T")
MOST = 20_000
MOST_SCHEMAS = 1_000


def page(request: Request, items: Sequence[T], most: int = MOST) -> list[T]:
    start = max(0, number(request, "offset", 0))
    limit = number(request, "limit", -1)
    return list(items[start : start + (limit if 0 < limit <= most else most)])
