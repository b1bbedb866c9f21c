"""Names of subjects and their contexts: `orders-value`, or `:.staging:orders-value`.

Each context has its own ids, so one registry can hold the schemas of several. A subject named
without a context is in the default one, `.`.
"""

from dataclasses import dataclass
from typing import Self
from unicodedata import category

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
GLOBAL_SCOPE = f":{GLOBAL_CONTEXT}:"
"""Its config and mode apply to every context that has none."""
ANY_CONTEXT = "*"
_RESERVED = ("__GLOBAL", "__EMPTY")


@dataclass(slots=True, frozen=True)
class QualifiedSubject:
    """`str()` returns the qualified name that records and responses have."""

    context: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        if text.startswith((":.", f":{ANY_CONTEXT}:")):
            context, _, name = text[1:].partition(":")
            return cls(context, name)
        return cls(DEFAULT_CONTEXT, text)

    @property
    def prefix(self) -> str:
        """The start of qualified names in its context, and the key of the context's config."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    def __str__(self) -> str:
        return self.prefix + self.name


def normalize_subject(subject: str) -> str:
    """Returns the qualified name of a subject: `:.:orders` and `orders` are the same."""
    return str(QualifiedSubject.parse(subject))


class ContextNameError(ValueError):
    """The name is not valid for a context."""


def context_prefix(context: str) -> str:
    """Returns `:.staging:` for `staging`, `.staging` and `:.staging:`."""
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise ContextNameError(f"A context cannot be called {name!r}: there is a colon in it")
    name = name if name.startswith(".") else f".{name}"
    return QualifiedSubject(name, "").prefix


def has_prefix(subject: str, prefix: str) -> bool:
    """A prefix `:*:` matches every context. A prefix without a context matches the default one."""
    if prefix.startswith(f":{ANY_CONTEXT}:"):
        return QualifiedSubject.parse(subject).name.startswith(prefix[len(ANY_CONTEXT) + 2 :])
    prefix = normalize_subject(prefix)
    context = QualifiedSubject.parse(prefix).context
    return subject.startswith(prefix) and QualifiedSubject.parse(subject).context == context


def is_valid_subject(subject: str) -> bool:
    """Returns whether a config or mode may be set for it: a subject or a context."""
    if QualifiedSubject.parse(subject).name in _RESERVED:
        return False
    return subject.isprintable() or not any(category(character) == "Cc" for character in subject)


def is_registrable(subject: str) -> bool:
    """Returns whether schemas may be registered under it."""
    return is_valid_subject(subject) and QualifiedSubject.parse(subject).context not in (
        GLOBAL_CONTEXT,
        ANY_CONTEXT,
    )


def qualify_reference(subject: str, referenced: str) -> str:
    """Returns the qualified name of a referenced subject, by default in the same context."""
    other = QualifiedSubject.parse(referenced)
    if other.context != DEFAULT_CONTEXT:
        return str(other)
    return str(QualifiedSubject(QualifiedSubject.parse(subject).context, referenced))
