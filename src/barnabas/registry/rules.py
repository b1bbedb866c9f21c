"""Validates rule sets. What rules do is up to the clients that execute them."""

import re
from collections.abc import Sequence

from barnabas.registry.definitions import RegistryRule, RegistryRuleSet
from barnabas.registry.errors import RegistryError

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
