"""Every public name of confluent_kafka.schema_registry exists, or is a gap in docs/clients.md."""

import importlib
import inspect
from typing import Any

import pytest

MODULES = ["", ".avro", ".error", ".json_schema", ".protobuf", ".schema_registry_client", ".serde"]

RULES = {
    "set_rule_config",
    "set_rule_registry",
    "rule_conf",
    "rule_config",
    "rule_registry",
    "configure_validation_rules",
    "validate_message",
    "get_inline_tags",
    "get_type",
    "transform",
}
"""Rules are not executed."""
VALUES = {
    "decimal_to_protobuf",
    "protobuf_to_decimal",
    "protobuf_to_variant",
    "variant_to_protobuf",
}
"""Confluent's own Protobuf types are messages like any other."""
INNARDS = {
    "LocalSchemaRepository",
    "configure_subject_name_strategy",
    "full_jitter",
    "is_map_field",
    "is_retriable",
    "is_success",
    "normalize_identity_pool",
    "parse_schema_with_repo",
}
"""Public only by name."""
GAPS = RULES | VALUES | INNARDS


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_confluents_module_exists_or_is_a_known_gap(module: str) -> None:
    theirs = importlib.import_module(f"confluent_kafka.schema_registry{module}")
    ours = importlib.import_module(f"barnabas.schema_registry{module}")
    names = _names(theirs)
    if module == ".serde":  # the rest of it is base classes and rules
        names &= {"AssociatedNameStrategy", "FALLBACK_TYPE", "KAFKA_CLUSTER_ID", "SchemaId"}
        names |= {"STRATEGY_TYPE_MAP", "SubjectNameStrategyType"}
    assert {name for name in names if not hasattr(ours, name)} <= GAPS
    for name in names - GAPS:
        its, our = getattr(theirs, name), getattr(ours, name)
        if inspect.isclass(its):
            assert _lacking(its, our) <= GAPS, name
            assert _lacking_parameters(its, our) <= GAPS, name
        elif callable(its):
            assert list(inspect.signature(our).parameters) == list(
                inspect.signature(its).parameters
            )


def _names(module: Any) -> set[str]:
    expected = getattr(module, "__all__", None)
    return (
        set(expected)
        if expected
        else {
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and str(getattr(value, "__module__", "")).startswith("confluent")
        }
    )


def _lacking(its: Any, our: Any) -> set[str]:
    lacking = {name for name in dir(its) if name[0] != "_" and not hasattr(our, name)}
    if its.__name__.startswith("Async"):
        lacking -= {"close", "set_cluster_id_resolver"}  # which only the synchronous ones have
    return lacking


def _lacking_parameters(its: Any, our: Any) -> set[str]:
    """Returns the parameters of methods and `__init__`, except those with *args or **kwargs."""
    lacking: set[str] = set()
    for name in {"__init__", *(name for name in dir(its) if name[0] != "_")}:
        method = getattr(our, name, None)
        if not inspect.isfunction(getattr(its, name)) or method is None:
            continue
        taken = inspect.signature(method).parameters
        if not any(item.kind is item.VAR_KEYWORD for item in taken.values()):
            lacking |= inspect.signature(getattr(its, name)).parameters.keys() - taken.keys()
    return lacking - {"args"}
