"""`ssl.principal.mapping.rules`: from the subject of a client's certificate to its user name."""

import re
from collections.abc import Callable
from typing import NamedTuple

DEFAULT = "DEFAULT"

_RULE = re.compile(
    r"\s*(?:DEFAULT|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/"
    r"(?P<case>[LU]?))\s*(?:,|\n|$)"
)
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)
_CASES: dict[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper, "": str}


class MappingRuleError(ValueError):
    """A rule that is not of the form `DEFAULT` or `RULE:pattern/replacement/[LU]`."""


class NoMatchingRuleError(Exception):
    """A subject that no rule matches."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    change_case: Callable[[str], str]

    def apply(self, subject: str) -> str | None:
        """Returns the user name, or None if the pattern does not match the whole subject."""
        if self.pattern.fullmatch(subject) is None:
            return None
        return self.change_case(self.pattern.sub(self._expand, subject))

    def _expand(self, match: re.Match[str]) -> str:
        def expand(reference: re.Match[str]) -> str:
            escaped, digits = reference.groups()
            if escaped is not None:
                return str(escaped)
            # As in Java, $12 is $1 and a 2 if there are fewer groups; without any it is literal.
            for end in range(len(digits), 0, -1):
                if int(digits[:end]) <= self.pattern.groups:
                    return (match[int(digits[:end])] or "") + digits[end:]
            return reference[0]

        return _REFERENCE.sub(expand, self.replacement)


class PrincipalMapper:
    """The rules of a listener. The first that matches the whole subject gives the name."""

    __slots__ = ("_rules",)

    def __init__(self, rules: str) -> None:
        """Raises MappingRuleError."""
        self._rules = _parse(rules)

    def user_name(self, subject: str) -> str:
        """Raises NoMatchingRuleError."""
        for rule in self._rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name
        raise NoMatchingRuleError(f"no rule of ssl.principal.mapping.rules matches {subject}")


def _parse(rules: str) -> list[_Rule | None]:
    """Returns the rules; None is DEFAULT."""
    parsed: list[_Rule | None] = []
    position = 0
    while position < len(rules):
        match = _RULE.match(rules, position)
        if match is None:
            raise MappingRuleError(
                f"Invalid rule {rules[position:]}: expected DEFAULT or "
                "RULE:pattern/replacement/[L|U]"
            )
        parsed.append(_rule_of(match))
        position = match.end()
    return parsed or [None]


def _rule_of(match: re.Match[str]) -> _Rule | None:
    if match["pattern"] is None:
        return None
    try:
        pattern = re.compile(match["pattern"])
    except re.error as error:
        raise MappingRuleError(f"Invalid rule {match[0].strip()}: {error}") from None
    return _Rule(pattern, match["replacement"], _CASES[match["case"]])
