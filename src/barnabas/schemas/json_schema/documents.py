"""Parses JSON Schema documents and resolves their references.

Nothing is fetched: a $ref leads into the schema, into its references, or to a meta-schema.
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
"""The JSON of a schema or subschema."""

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(slots=True, frozen=True)
class Subschema:
    """A schema or a part of one, with the resolvers of its references."""

    node: Node
    specification: Specification[Node]
    resolver: Resolver[Node]
    by_name: Resolver[Node]
    """Finds references by their registered names, whatever $id the schema has."""

    def subschema_at(self, node: Node) -> "Subschema":
        """Returns a subschema of this one. An $id in it changes the base of its references."""
        resource = self.specification.create_resource(node)
        try:
            resolver = self.resolver.in_subresource(resource)
        except _UNRESOLVED:  # an invalid $id where no meta-schema applies
            resolver = self.resolver
        return replace(self, node=node, resolver=resolver)

    @property
    def is_alias(self) -> bool:
        """Whether it is only a $ref. Up to draft 7, keywords beside a $ref are ignored."""
        if not isinstance(self.node, Mapping) or _reference(self.node) is None:
            return False
        return self.specification.name in REF_ONLY_DRAFTS or self.node.keys() <= _ANNOTATIONS

    def target(self) -> "Subschema | None":
        """Returns the schema that it refers to, following chains of aliases."""
        current, followed = self, 0
        while (reference := _reference(current.node)) is not None and (
            current is self or current.is_alias
        ):
            if followed == _MAX_CHAIN:
                raise SchemaError(f"The $ref {reference} leads back to itself, to no schema")
            current, followed = current._lookup(reference), followed + 1
        return current if followed else None

    def _lookup(self, reference: str) -> "Subschema":
        try:
            resolved = self.resolver.lookup(reference)
        except _UNRESOLVED:
            try:
                resolved = self.by_name.lookup(reference)
            except _UNRESOLVED as error:
                raise SchemaError(
                    f"The $ref {reference} leads nowhere: not in the schema nor its references"
                ) from error
        if not isinstance(resolved.contents, bool | Mapping):
            raise SchemaError(f"The $ref {reference} leads to no schema")
        return replace(self, node=resolved.contents, resolver=resolved.resolver)


REF_ONLY_DRAFTS: Final = ("draft-03", "draft-04", "draft-06", "draft-07")
_ANNOTATIONS: Final = frozenset(
    [
        *REFERENCES,
        *("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$defs", "definitions"),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    ]
)
# A JSON pointer through a value that is no schema raises one of the last two.
_UNRESOLVED: Final = (Unresolvable, ValueError, AttributeError, TypeError)
_MAX_CHAIN: Final = 50


def parse_document(text: str, references: Mapping[str, str]) -> Subschema:
    """Raises SchemaError if a keyword has an invalid value or a $ref leads nowhere."""
    try:
        return _parse(text, references)
    except SchemaError:
        raise
    except ValueError as error:
        raise SchemaError(f"An $id or $ref is no URI: {error}") from error


def _parse(text: str, references: Mapping[str, str]) -> Subschema:
    root = _parse_one(text)
    specification = _specification(root)
    resource = specification.create_resource(_with_definitions(root))
    base = resource.id() or ""
    registry: Registry[Node] = META_SCHEMAS
    for name, referenced in references.items():
        try:
            resource_of_reference = _resource(referenced)
        except SchemaError as error:
            raise SchemaError(f"In the reference {name}: {error}") from error
        # A $ref has the reference's name, or the URI it has relative to the schema's $id.
        for uri in {name, f"./{name}", urljoin(base, name)}:
            registry = registry.with_resource(uri, resource_of_reference)
    document = Subschema(
        resource.contents,
        specification,
        registry.resolver_with_root(resource),
        registry.resolver(),
    )
    _check_references(document)
    return document


def _resource(text: str) -> Resource[Node]:
    node = _parse_one(text)
    return _specification(node).create_resource(_with_definitions(node))


def _parse_one(text: str) -> Node:
    node = json_text.read(text)
    if not isinstance(node, bool | dict):
        raise SchemaError(f"A JSON schema is an object or a boolean, not {json_text.kind(node)}")
    _check_size(node)
    if isinstance(node, dict) and not isinstance(node.get("$schema", ""), str):
        raise SchemaError("The value at #/$schema is wrong: it is no string")
    try:
        validator_for(node, default=Draft7Validator).check_schema(node)
    except FormError as error:
        location = "/".join(["#", *map(str, error.absolute_path)])
        raise SchemaError(f"The value at {location} is wrong: {error.message[:500]}") from error
    except RecursionError:
        raise SchemaError("The schema nests too deeply to be checked") from None
    return node


_MAX_OBJECTS: Final = 10_000
_MAX_MIXED_ITEMS: Final = 1_000


def _check_size(document: Node) -> None:
    """Checking takes up to a millisecond per object, and per pair of items of different types."""
    objects = 0
    pending: list[object] = [document]
    while pending:
        match pending.pop():
            case dict() as members:
                objects += 1
                pending.extend(members.values())
            case list() as items if len(items) > _MAX_MIXED_ITEMS:
                if not any(all(type(item) is kind for item in items) for kind in (str, int, float)):
                    raise SchemaError(
                        f"An array of the schema has more than {_MAX_MIXED_ITEMS} items"
                        " that are neither all strings nor all numbers"
                    )
            case list() as items:
                pending.extend(items)
    if objects > _MAX_OBJECTS:
        raise SchemaError(f"The schema has more than {_MAX_OBJECTS} objects: split it up")


def _specification(node: Node) -> Specification[Node]:
    url = node.get("$schema") if isinstance(node, Mapping) else None
    return cast("Specification[Node]", specification_with(url, default=DRAFT7) if url else DRAFT7)


def _with_definitions(node: Node) -> Node:
    """Copies `definitions` to `$defs`, its name in later drafts: a $ref may use either."""
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
    pending = [root]
    while pending:
        subschema = pending.pop()
        bounds.step()
        subschema.target()
        resource = subschema.specification.create_resource(subschema.node)
        pending.extend(subschema.subschema_at(inner.contents) for inner in resource.subresources())
