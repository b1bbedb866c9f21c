"""Subjects and the contexts they live in: `orders-value`, or `:.staging:orders-value`.

A context has ids of its own, so that schemas of several registries can be kept in one. What is
named without a context is in the default one, `.`.
"""

from dataclasses import dataclass
from typing import Self

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
"""Its config and mode are those of every context that has none."""
ANY_CONTEXT = "*"


@dataclass(slots=True, frozen=True)
class Subject:
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


def normalized(subject: str) -> str:
    """The one qualified name of a subject that can be written in several ways."""
    return str(Subject.parse(subject))


def context_prefix(context: str) -> str:
    """`staging`, `.staging` and `:.staging:` are the same: what its subjects begin with."""
    name = context.removeprefix(":").removesuffix(":")
    name = name if name.startswith(".") else f".{name}"
    return Subject(name, "").prefix


def beside(subject: str, referred: str) -> str:
    """The qualified name of what `subject` refers to: in its own context, unless it says so."""
    other = Subject.parse(referred)
    if other.context != DEFAULT_CONTEXT:
        return str(other)
    return str(Subject(Subject.parse(subject).context, referred))
