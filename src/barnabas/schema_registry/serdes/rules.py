"""Schemas with rules are refused: to skip one that encrypts would write what is secret."""

from typing import Any

from barnabas.serialization import SerializationError


def refuse_rules(schema: Any, modes: tuple[str, ...], where: str | None) -> None:
    """SerializationError where the schema has rules for one of these modes."""
    rule_set = getattr(schema, "rule_set", None)
    if rule_set is None:
        return
    for rules in (rule_set.migration_rules, rule_set.domain_rules, rule_set.encoding_rules):
        for rule in rules or ():
            if rule.mode in modes and not rule.disabled:
                raise SerializationError(
                    f"the schema of {where or 'these bytes'} has the rule {rule.name!r} "
                    f"({rule.type}), and rules are not run here: use confluent_kafka's serializers "
                    "for this subject, or disable the rule"
                )
