"""The handlers of the APIs that a broker or a controller serves."""

import importlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from barnabas.wire.apis import ApiKey, api
from barnabas.wire.schema import VersionRange

Handler = Callable[[Any, Any], Coroutine[Any, None, Any]]
"""`async def handle(request, context: RequestContext) -> response`; None if none is expected.

It may await only futures. Views of the request (`records`) are valid until its first await.
"""


class ApiHandlers(Mapping[ApiKey, Handler]):
    """The `handle` functions of a package's modules, which are imported on first use."""

    __slots__ = ("_modules", "_package")

    def __init__(self, package: str, modules: Mapping[ApiKey, str]) -> None:
        self._package = package
        self._modules = modules

    def __getitem__(self, key: ApiKey) -> Handler:
        module = importlib.import_module(f"{self._package}.{self._modules[key]}")
        handle: Handler = module.handle
        return handle

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(self._modules)

    __hash__ = object.__hash__  # it is immutable

    def __len__(self) -> int:
        return len(self._modules)


def served_versions(key: ApiKey) -> VersionRange:
    """Returns the declared versions; like Kafka, without a last one that is not stable yet."""
    return api(key).stable_versions
