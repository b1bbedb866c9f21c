"""Whether a set of rules makes sense. What they do is up to the clients that execute them."""

from collections.abc import Sequence

from barnabas.registry.documents import Rule, RuleSet
from barnabas.registry.errors import RegistryError

_MIGRATION = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN = ("WRITE", "READ", "WRITEREAD")


def require_valid(rules: RuleSet | None) -> None:
    """RegistryError 42210 if two rules have one name, or one is of a mode that its kind has not."""
    if rules is None:
        return
    names: set[str] = set()
    _check(rules.migration_rules, "Migration", _MIGRATION, names)
    _check(rules.domain_rules, "Domain", _DOMAIN, names)
    _check(rules.encoding_rules, "Encoding", _DOMAIN, names)


def _check(rules: Sequence[Rule], kind: str, modes: tuple[str, ...], names: set[str]) -> None:
    for rule in rules:
        if not rule.name or not rule.name[0].isalpha():
            raise _invalid(rule, "a name that begins with a letter is missing")
        if rule.name in names:
            raise _invalid(rule, f"Found rule with duplicate name '{rule.name}'")
        names.add(rule.name)
        if rule.mode not in modes:
            raise _invalid(rule, f"{kind} rules can only be {', '.join(modes)}")


def _invalid(rule: Rule, reason: str) -> RegistryError:
    return RegistryError(42210, f"Invalid rule {rule.name}: {reason}")
