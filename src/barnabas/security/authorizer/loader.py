"""Builds the authorizer of a node by `authorizer.class.name`.

"" (the default)                                             everything is allowed
acl, org.apache.kafka.metadata.authorizer.StandardAuthorizer  ACLs of the cluster
module:Class                                                 a subclass of `Authorizer`
any other name                                               an entry point of that name
"""

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Final

from barnabas.security.authorizer.authorizer import Authorizer

SETTING: Final = "authorizer.class.name"
ENTRY_POINT_GROUP: Final = "barnabas.authorizers"
_STANDARD = frozenset({"acl", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"})


class InvalidAuthorizer(ValueError):  # noqa: N818 - it is the setting that is invalid
    """The node cannot start with its authorizer. The message is for the operator."""


def load_authorizer(settings: Mapping[str, str]) -> Authorizer | None:
    """Returns the configured authorizer, or None if everything is allowed.

    Raises InvalidAuthorizer, because a node without its authorizer must not start.
    """
    name = settings.get(SETTING, "").strip()
    if not name:
        return None
    authorizer = _authorizer_class(name)()
    try:
        authorizer.configure(settings)
    except ValueError as error:
        raise InvalidAuthorizer(str(error)) from error
    return authorizer


def _authorizer_class(name: str) -> type[Authorizer]:
    if name in _STANDARD:
        from barnabas.security.authorizer.standard_authorizer import StandardAuthorizer

        return StandardAuthorizer
    try:
        found = _import_class(name) if ":" in name else _entry_point(name)
    except (ImportError, AttributeError) as error:
        raise InvalidAuthorizer(f"{SETTING} is {name}, which cannot be imported: {error}.") from (
            error
        )
    if not isinstance(found, type) or not issubclass(found, Authorizer):
        raise InvalidAuthorizer(
            f"{SETTING} is {name}, which is not a subclass of "
            f"{Authorizer.__module__}.{Authorizer.__name__}."
        )
    return found


def _import_class(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _entry_point(name: str) -> Any:
    for entry_point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return entry_point.load()
    raise InvalidAuthorizer(
        f"{SETTING} is {name}, which is not an authorizer here. Use acl for the ACLs of the "
        f"cluster, module:Class, or the name of an entry point in {ENTRY_POINT_GROUP}. Java "
        "classes cannot be loaded."
    )
