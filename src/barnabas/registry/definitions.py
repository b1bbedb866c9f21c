"""Schema definitions: a schema's text with its references, metadata and rules.

The registry stores rules and returns them; clients execute them. Two definitions are the same
schema if a digest over all of it is the same. That digest is the schema's guid.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from barnabas.registry.errors import RegistryError

Json = dict[str, Any]
Tags = tuple[tuple[str, tuple[str, ...]], ...]
Properties = tuple[tuple[str, str], ...]


@dataclass(slots=True, frozen=True)
class RegistryReference:
    """A reference to a version of a subject, by the name that the referring text uses."""

    name: str
    subject: str
    version: int

    @classmethod
    def from_json(cls, document: object) -> Self:
        fields = _object(document, "references")
        return cls(
            _text(fields, "name") or "", _text(fields, "subject") or "", _number(fields, "version")
        )

    def to_json(self) -> Json:
        return {"name": self.name, "subject": self.subject, "version": self.version}

    def digest_parts(self) -> Iterator[bytes]:
        yield self.name.encode()
        yield self.subject.encode()
        yield self.version.to_bytes(4, "big", signed=True)


@dataclass(slots=True, frozen=True)
class RegistryMetadata:
    """Properties of a schema, tags of its fields by path, and names of sensitive properties."""

    tags: Tags = ()
    properties: Properties = ()
    sensitive: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, document: object) -> Self | None:
        if document is None:
            return None
        fields = _object(document, "metadata")
        tags = _object(fields.get("tags") or {}, "metadata.tags")
        return cls(
            tuple((path, _words(words, "metadata.tags")) for path, words in sorted(tags.items())),
            _pairs(fields.get("properties"), "metadata.properties"),
            _words(fields.get("sensitive"), "metadata.sensitive"),
        )

    def to_json(self) -> Json:
        return _present(
            tags={path: list(words) for path, words in self.tags},
            properties=dict(self.properties),
            sensitive=list(self.sensitive),
        )

    def merged_over(self, weaker: Self | None) -> Self:
        """Merges the two. Where they differ, this one's values are used."""
        if weaker is None:
            return self
        return type(self)(
            tuple(sorted((dict(weaker.tags) | dict(self.tags)).items())),
            tuple(sorted((dict(weaker.properties) | dict(self.properties)).items())),
            tuple(sorted({*weaker.sensitive, *self.sensitive})),
        )

    def get_property(self, name: str) -> str | None:
        return dict(self.properties).get(name)

    def digest_parts(self) -> Iterator[bytes]:
        for path, words in self.tags:
            yield path.encode()
            yield from (word.encode() for word in words)
        for key, value in self.properties:
            yield key.encode()
            yield value.encode()
        yield from (name.encode() for name in self.sensitive)


@dataclass(slots=True, frozen=True)
class RegistryRule:
    name: str | None = None
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()
    params: Properties = ()
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False

    @classmethod
    def from_json(cls, document: object) -> Self:
        fields = _object(document, "ruleSet")
        return cls(
            name=_text(fields, "name"),
            doc=_text(fields, "doc"),
            kind=_text(fields, "kind"),
            mode=_text(fields, "mode"),
            type=_text(fields, "type"),
            tags=_words(fields.get("tags"), "ruleSet.tags"),
            params=_pairs(fields.get("params"), "ruleSet.params"),
            expr=_text(fields, "expr"),
            on_success=_text(fields, "onSuccess"),
            on_failure=_text(fields, "onFailure"),
            disabled=bool(fields.get("disabled", False)),
        )

    def to_json(self) -> Json:
        return _present(
            name=self.name,
            doc=self.doc,
            kind=self.kind,
            mode=self.mode,
            type=self.type,
            tags=list(self.tags),
            params=dict(self.params),
            expr=self.expr,
            onSuccess=self.on_success,
            onFailure=self.on_failure,
        ) | {"disabled": self.disabled}

    def digest_parts(self) -> Iterator[bytes]:
        texts = [self.name, self.doc, self.kind, self.mode, self.type, *self.tags]
        texts += [text for pair in self.params for text in pair]
        texts += [self.expr, self.on_success, self.on_failure]
        yield from (text.encode() for text in texts if text is not None)
        if self.disabled:
            yield b"\1"


@dataclass(slots=True, frozen=True)
class RegistryRuleSet:
    migration_rules: tuple[RegistryRule, ...] = ()
    domain_rules: tuple[RegistryRule, ...] = ()
    encoding_rules: tuple[RegistryRule, ...] = ()
    enable_at: str | None = None

    @classmethod
    def from_json(cls, document: object) -> Self | None:
        if document is None:
            return None
        fields = _object(document, "ruleSet")
        return cls(
            _rules(fields, "migrationRules"),
            _rules(fields, "domainRules"),
            _rules(fields, "encodingRules"),
            _text(fields, "enableAt"),
        )

    def to_json(self) -> Json:
        return _present(
            migrationRules=[rule.to_json() for rule in self.migration_rules],
            domainRules=[rule.to_json() for rule in self.domain_rules],
            encodingRules=[rule.to_json() for rule in self.encoding_rules],
            enableAt=self.enable_at,
        )

    def merged_over(self, weaker: Self | None) -> Self:
        """Merges the two. Of two rules with one name, this one's is used."""
        if weaker is None:
            return self
        return type(self)(
            _merged(weaker.migration_rules, self.migration_rules),
            _merged(weaker.domain_rules, self.domain_rules),
            _merged(weaker.encoding_rules, self.encoding_rules),
            self.enable_at or weaker.enable_at,
        )

    @property
    def rules(self) -> tuple[RegistryRule, ...]:
        return (*self.migration_rules, *self.domain_rules, *self.encoding_rules)

    def digest_parts(self) -> Iterator[bytes]:
        for rule in self.rules:
            yield from rule.digest_parts()
        if self.enable_at is not None:
            yield self.enable_at.encode()


@dataclass(slots=True, frozen=True)
class SchemaDefinition:
    """A schema with its metadata and rules, independent of subject and version."""

    schema: str
    schema_type: str = "AVRO"
    references: tuple[RegistryReference, ...] = ()
    metadata: RegistryMetadata | None = None
    rule_set: RegistryRuleSet | None = None
    guid: str = field(init=False, compare=False)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Reads the fields that records and requests have in common."""
        return cls(
            _text(document, "schema") or "",
            _text(document, "schemaType") or "AVRO",
            tuple(
                map(RegistryReference.from_json, _list(document.get("references"), "references"))
            ),
            RegistryMetadata.from_json(document.get("metadata")),
            RegistryRuleSet.from_json(document.get("ruleSet")),
        )

    def __post_init__(self) -> None:
        digest = hashlib.md5(self.schema.encode(), usedforsecurity=False)
        for reference in self.references:
            for part in reference.digest_parts():
                digest.update(part)
        for document in (self.metadata, self.rule_set):
            if document is not None:
                digest.update(b"\1")  # an empty one differs from none
                for part in document.digest_parts():
                    digest.update(part)
        object.__setattr__(self, "guid", str(UUID(bytes=digest.digest())))


class DocumentError(ValueError):
    """A JSON document does not have the expected form. The message names the field."""


def parse_json(content: bytes) -> Any:
    """Raises DocumentError for invalid JSON, and for lone surrogates (`\\ud800`)."""
    try:
        document = json.loads(content)
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not JSON: {error}") from None
    return document


def _rules(fields: Mapping[str, Any], kind: str) -> tuple[RegistryRule, ...]:
    return tuple(map(RegistryRule.from_json, _list(fields.get(kind), f"ruleSet.{kind}")))


def _merged(
    weaker: Sequence[RegistryRule], stronger: Sequence[RegistryRule]
) -> tuple[RegistryRule, ...]:
    names = {rule.name for rule in stronger}
    return (*(rule for rule in weaker if rule.name not in names), *stronger)


def _present(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value}


def _object(document: object, where: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise DocumentError(f"{where}: an object is expected, not {document!r}")
    return document


def _list(document: object, where: str) -> Sequence[Any]:
    if document is None:
        return ()
    if not isinstance(document, list):
        raise DocumentError(f"{where}: a list is expected, not {document!r}")
    return document


def _words(document: object, where: str) -> tuple[str, ...]:
    words = _list(document, where)
    if not all(isinstance(word, str) for word in words):
        raise DocumentError(f"{where}: a list of strings is expected, not {document!r}")
    return tuple(sorted(set(words)))


def _pairs(document: object, where: str) -> Properties:
    pairs = _object(document or {}, where)
    if not all(isinstance(value, str) for value in pairs.values()):
        raise DocumentError(f"{where}: all values have to be strings")
    return tuple(sorted(pairs.items()))


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise DocumentError(f"{name}: a string is expected, not {value!r}")
    return value


def _number(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name, -1)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**31:
        raise DocumentError(f"{name}: a whole number is expected, not {value!r}")
    return value


_NAME = re.compile(r"[^\W\d][\w-]{0,255}")
_MIGRATION = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN = ("WRITE", "READ", "WRITEREAD")


def require_valid_rules(rules: RegistryRuleSet | None) -> None:
    """Raises RegistryError 42210 if two rules have one name, or one is not valid for its kind."""
    if rules is None:
        return
    names: set[str] = set()
    _check(rules.migration_rules, "Migration", _MIGRATION, names)
    _check(rules.domain_rules, "Domain", _DOMAIN, names)
    _check(rules.encoding_rules, "Encoding", _DOMAIN, names)


def _check(
    rules: Sequence[RegistryRule], kind: str, modes: tuple[str, ...], names: set[str]
) -> None:
    for rule in rules:
        if rule.name is None or not _NAME.fullmatch(rule.name):
            raise _invalid(rule, "a name needs letters, digits, _ and -, and no digit or - first")
        if rule.name in names:
            raise _invalid(rule, f"Found rule with duplicate name '{rule.name}'")
        names.add(rule.name)
        if rule.type is None:
            raise _invalid(rule, "Missing rule type")
        if rule.mode not in modes:
            raise _invalid(rule, f"{kind} rules can only be {', '.join(modes)}")
        actions = f"{rule.on_success}{rule.on_failure}"
        if "," in actions and rule.mode not in ("WRITEREAD", "UPDOWN"):
            raise _invalid(rule, "Multiple actions only valid with WRITEREAD and UPDOWN")


def _invalid(rule: RegistryRule, reason: str) -> RegistryError:
    return RegistryError(42210, f"Invalid rule {rule.name}: {reason}")
