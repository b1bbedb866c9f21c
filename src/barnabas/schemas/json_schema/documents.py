"""JSON Schema documents and what they refer to: definitions, other schemas, meta-schemas.

Nothing is ever fetched: what is neither in a schema nor in its references does not exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from urllib.parse import urljoin

from jsonschema.exceptions import SchemaError as FormError
from jsonschema.validators import Draft7Validator, validator_for
from jsonschema_specifications import REGISTRY as META_SCHEMAS
from referencing import Registry, Resource, Specification
from referencing._core import Resolver
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7, specification_with

from barnabas.schemas import SchemaError, json_text
from barnabas.schemas.bounds import WalkBounds

Node = bool | Mapping[str, Any]
"""A schema, or a schema within one."""

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(slots=True, frozen=True)
class Subschema:
    """A schema and where to look up what it refers to."""

    node: Node
    specification: Specification[Node]
    resolver: Resolver[Node]
    by_name: Resolver[Node]
    """Finds references by the very names they were given, wherever the schema says it lies."""

    def subschema_at(self, node: Node) -> "Subschema":
        """A schema that this one holds; an $id of its own changes what it refers to."""
        resource = self.specification.create_resource(node)
        try:
            resolver = self.resolver.in_subresource(resource)
        except _UNRESOLVED:  # an $id that is none, where no meta-schema looked
            resolver = self.resolver
        return replace(self, node=node, resolver=resolver)

    @property
    def is_alias(self) -> bool:
        """Whether it says no more than what it refers to; up to draft 7 no $ref may."""
        if not isinstance(self.node, Mapping) or _reference(self.node) is None:
            return False
        return self.specification.name in REF_STANDS_ALONE or self.node.keys() <= _SAY_NOTHING

    def target(self) -> "Subschema | None":
        """What it refers to, at the end of the chain where that is an alias."""
        place, followed = self, 0
        while (reference := _reference(place.node)) is not None and (
            place is self or place.is_alias
        ):
            if followed == _MAX_CHAIN:
                raise SchemaError(f"The $ref {reference} leads back to itself, to no schema")
            place, followed = place._lookup(reference), followed + 1
        return place if followed else None

    def _lookup(self, reference: str) -> "Subschema":
        try:
            found = self.resolver.lookup(reference)
        except _UNRESOLVED:
            try:
                found = self.by_name.lookup(reference)
            except _UNRESOLVED as error:
                raise SchemaError(
                    f"The $ref {reference} leads nowhere: not in the schema nor its references"
                ) from error
        if not isinstance(found.contents, bool | Mapping):
            raise SchemaError(f"The $ref {reference} leads to no schema")
        return replace(self, node=found.contents, resolver=found.resolver)


REF_STANDS_ALONE: Final = ("draft-03", "draft-04", "draft-06", "draft-07")
_SAY_NOTHING: Final = frozenset(
    [
        *REFERENCES,
        *("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$defs", "definitions"),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    ]
)
# A pointer through what is no schema stumbles over its kind.
_UNRESOLVED: Final = (Unresolvable, ValueError, AttributeError, TypeError)
_MAX_CHAIN: Final = 50


def parse_document(text: str, references: Mapping[str, str]) -> Subschema:
    """SchemaError where a keyword has a wrong value or a $ref leads nowhere."""
    try:
        return _read(text, references)
    except SchemaError:
        raise
    except ValueError as error:
        raise SchemaError(f"An $id or $ref is no URI: {error}") from error


def _read(text: str, references: Mapping[str, str]) -> Subschema:
    root = _read_one(text)
    specification = _specification(root)
    resource = specification.create_resource(_with_definitions(root))
    base = resource.id() or ""
    registry: Registry[Node] = META_SCHEMAS
    for name, referenced in references.items():
        try:
            linked = _linked(referenced)
        except SchemaError as error:
            raise SchemaError(f"In the reference {name}: {error}") from error
        # Referred to by its name, or by where that is as seen from the schema's own id.
        for uri in {name, f"./{name}", urljoin(base, name)}:
            registry = registry.with_resource(uri, linked)
    place = Subschema(
        resource.contents,
        specification,
        registry.resolver_with_root(resource),
        registry.resolver(),
    )
    _check_references(place)
    return place


def _linked(text: str) -> Resource[Node]:
    node = _read_one(text)
    return _specification(node).create_resource(_with_definitions(node))


def _read_one(text: str) -> Node:
    node = json_text.read(text)
    if not isinstance(node, bool | dict):
        raise SchemaError(f"A JSON schema is an object or a boolean, not {json_text.kind(node)}")
    _check_size(node)
    if isinstance(node, dict) and not isinstance(node.get("$schema", ""), str):
        raise SchemaError("The value at #/$schema is wrong: it is no string")
    try:
        validator_for(node, default=Draft7Validator).check_schema(node)
    except FormError as error:
        place = "/".join(["#", *map(str, error.absolute_path)])
        raise SchemaError(f"The value at {place} is wrong: {error.message[:500]}") from error
    except RecursionError:
        raise SchemaError("The schema nests too deeply to be checked") from None
    return node


_MAX_OBJECTS: Final = 10_000
_MAX_MIXED_ITEMS: Final = 1_000


def _check_size(document: Node) -> None:
    """Checking takes up to a millisecond for each object, and for each pair of unlike items."""
    objects = 0
    waiting: list[object] = [document]
    while waiting:
        match waiting.pop():
            case dict() as members:
                objects += 1
                waiting.extend(members.values())
            case list() as items if len(items) > _MAX_MIXED_ITEMS:
                if not any(all(type(item) is kind for item in items) for kind in (str, int, float)):
                    raise SchemaError(
                        f"An array of the schema has more than {_MAX_MIXED_ITEMS} items"
                        " that are neither all strings nor all numbers"
                    )
            case list() as items:
                waiting.extend(items)
    if objects > _MAX_OBJECTS:
        raise SchemaError(f"The schema has more than {_MAX_OBJECTS} objects: split it up")


def _specification(node: Node) -> Specification[Node]:
    url = node.get("$schema") if isinstance(node, Mapping) else None
    return cast("Specification[Node]", specification_with(url, default=DRAFT7) if url else DRAFT7)


def _with_definitions(node: Node) -> Node:
    """Drafts renamed `definitions` to `$defs`; a $ref may say either."""
    if not isinstance(node, Mapping):
        return node
    old, new = node.get("definitions"), node.get("$defs", {})
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return node
    return {**node, "$defs": {**old, **new}}


def _reference(node: Node) -> str | None:
    if not isinstance(node, Mapping):
        return None
    return next((node[key] for key in REFERENCES if isinstance(node.get(key), str)), None)


def _check_references(root: Subschema) -> None:
    bounds = WalkBounds("read it")
    waiting = [root]
    while waiting:
        place = waiting.pop()
        bounds.step()
        place.target()
        resource = place.specification.create_resource(place.node)
        waiting.extend(place.subschema_at(inner.contents) for inner in resource.subresources())
