"""From a Kerberos principal to a user: `sasl.kerberos.principal.to.local.rules`.

    DEFAULT                               first component, if the realm is ours
    RULE:[n:format](regex)s/from/to/g/L   for principals of n components

The format has $0 for the realm and $1, $2 for the components. The regex, if there is one, must
match the whole of the result; then s/from/to/ replaces in it, everywhere with g; /L and /U change
its case. The first rule that applies decides.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PRINCIPAL = re.compile(r"([^/@]+)(?:/([^/@]+))?(?:@([^/@]+))?")
_RULE = re.compile(
    r"DEFAULT|RULE:\[(?P<count>\d+):(?P<format>[^\]]*)\](?:\((?P<condition>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)


class NoLocalName(Exception):  # noqa: N818 - what happened
    """No rule applies to a principal, or its result is no user name."""


@dataclass(slots=True, frozen=True)
class _Rule:
    component_count: int | None  # None: DEFAULT
    format: str = ""
    condition: re.Pattern[str] | None = None
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    replaces_all: bool = False
    case: str | None = None


class LocalNameRules:
    """The rules of a node; `realm` is its own."""

    def __init__(self, rules: Iterable[str], realm: str) -> None:
        """Raises ValueError for a malformed rule."""
        self._rules = [_parse(rule) for rule in rules]
        self._realm = realm

    def local_name(self, principal: str) -> str:
        """Returns the user of a principal. Raises NoLocalName."""
        found = _PRINCIPAL.fullmatch(principal)
        if found is None:
            raise NoLocalName(f"{principal!a} is not of the form name[/host]@REALM")
        components = [part for part in (found[1], found[2]) if part is not None]
        realm = found[3] or self._realm
        for rule in self._rules:
            name = self._apply(rule, components, realm)
            if name is not None:
                if not name or "/" in name or "@" in name:
                    raise NoLocalName(f"a rule makes {name!a} of {principal!a}, which is no user")
                return name
        raise NoLocalName(f"no rule of sasl.kerberos.principal.to.local.rules is for {principal!a}")

    def _apply(self, rule: _Rule, components: list[str], realm: str) -> str | None:
        if rule.component_count is None:
            return components[0] if realm == self._realm else None
        if rule.component_count != len(components):
            return None
        values = [realm, *components]
        name = re.sub(
            r"\$(\d)",
            lambda index: values[int(index[1])] if int(index[1]) < len(values) else "",
            rule.format,
        )
        if rule.condition is not None and not rule.condition.fullmatch(name):
            return None
        if rule.pattern is not None:
            name = rule.pattern.sub(rule.replacement, name, count=0 if rule.replaces_all else 1)
        match rule.case:
            case "L":
                return name.lower()
            case "U":
                return name.upper()
        return name


def _parse(text: str) -> _Rule:
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text} is neither DEFAULT nor RULE:[n:format](regex)s/from/to/g/L")
    if found["count"] is None:
        return _Rule(None)
    try:
        return _Rule(
            int(found["count"]),
            found["format"],
            re.compile(found["condition"]) if found["condition"] is not None else None,
            re.compile(found["from"]) if found["from"] is not None else None,
            _python_replacement(found["to"] or ""),
            found["all"] is not None,
            found["case"],
        )
    except re.error as error:
        raise ValueError(f"{text} has an invalid regular expression: {error}") from None


def _python_replacement(text: str) -> str:
    """Turns the groups of Java ($1) into those of Python."""
    return re.sub(r"\$(\d)", r"\\g<\1>", text.replace("\\", "\\\\"))
