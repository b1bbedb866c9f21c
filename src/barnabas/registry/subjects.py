"""Subjects and the contexts they live in: `orders-value`, or `:.staging:orders-value`.

A context has ids of its own, so that schemas of several registries can be kept in one. What is
named without a context is in the default one, `.`.
"""

from dataclasses import dataclass
from typing import Self
from unicodedata import category

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
GLOBAL_SCOPE = f":{GLOBAL_CONTEXT}:"
"""Its config and mode are those of every context that has none."""
ANY_CONTEXT = "*"
_RESERVED = ("__GLOBAL", "__EMPTY")


@dataclass(slots=True, frozen=True)
class QualifiedSubject:
    """`str` of it is the qualified name that records and answers have."""

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
        """What qualified names of its context begin with; the context as configs are keyed."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    def __str__(self) -> str:
        return self.prefix + self.name


def normalize_subject(subject: str) -> str:
    """The one qualified name of a subject that can be written in several ways."""
    return str(QualifiedSubject.parse(subject))


class ContextNameError(ValueError):
    """No context can be called so."""


def context_prefix(context: str) -> str:
    """`staging`, `.staging` and `:.staging:` are the same: what its subjects begin with."""
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise ContextNameError(f"A context cannot be called {name!r}: there is a colon in it")
    name = name if name.startswith(".") else f".{name}"
    return QualifiedSubject(name, "").prefix


def has_prefix(subject: str, prefix: str) -> bool:
    """`:*:` in front stands for every context; without a context it is the default one's."""
    if prefix.startswith(f":{ANY_CONTEXT}:"):
        return QualifiedSubject.parse(subject).name.startswith(prefix[len(ANY_CONTEXT) + 2 :])
    prefix = normalize_subject(prefix)
    context = QualifiedSubject.parse(prefix).context
    return subject.startswith(prefix) and QualifiedSubject.parse(subject).context == context


def is_valid_subject(subject: str) -> bool:
    """Whether something may be said of it: a subject, or a context."""
    if QualifiedSubject.parse(subject).name in _RESERVED:
        return False
    return subject.isprintable() or not any(category(each) == "Cc" for each in subject)


def is_registrable(subject: str) -> bool:
    """Whether schemas may be registered under it."""
    return is_valid_subject(subject) and QualifiedSubject.parse(subject).context not in (
        GLOBAL_CONTEXT,
        ANY_CONTEXT,
    )


def qualify_reference(subject: str, referred: str) -> str:
    """The qualified name of what `subject` refers to: in its own context, unless it says so."""
    other = QualifiedSubject.parse(referred)
    if other.context != DEFAULT_CONTEXT:
        return str(other)
    return str(QualifiedSubject(QualifiedSubject.parse(subject).context, referred))
