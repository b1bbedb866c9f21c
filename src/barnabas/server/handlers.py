"""The handlers of one kind of listener, by API."""

import importlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from barnabas.wire.apis import ApiKey, api
from barnabas.wire.schema import VersionRange

Handler = Callable[[Any, Any], Coroutine[Any, None, Any]]
"""`async def handle(request, call: Call) -> response`; None for no answer (acks=0).

It may await futures only. Views into the request (`records`) hold until its first await.
"""


class Handlers(Mapping[ApiKey, Handler]):
    """The `handle` of a package's modules, each imported when it is first looked up."""

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

    __hash__ = object.__hash__  # what it holds never changes

    def __len__(self) -> int:
        return len(self._modules)


def served_versions(key: ApiKey) -> VersionRange:
    """All that are declared, but for a last one that may still change: Kafka hides those too."""
    return api(key).stable_versions
