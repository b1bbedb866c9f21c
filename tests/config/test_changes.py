"""What one operation of IncrementalAlterConfigs makes of a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config import (
    InvalidConfig,
    InvalidConfigRequest,
    Operation,
    ResourceType,
    apply_operation,
    find_setting,
)
from barnabas.config.setting import split_list

POLICY = find_setting(ResourceType.TOPIC, "cleanup.policy")
RETENTION = find_setting(ResourceType.TOPIC, "retention.ms")


def test_set_and_delete() -> None:
    assert apply_operation(RETENTION, "1", Operation.SET, "2") == "2"
    assert apply_operation(RETENTION, "1", Operation.DELETE, None) is None
    assert apply_operation(RETENTION, "1", Operation.DELETE, "ignored") is None


@pytest.mark.parametrize(
    ("current", "operation", "value", "after"),
    [
        ("delete", Operation.APPEND, "compact", "delete,compact"),
        ("delete", Operation.APPEND, "delete", "delete"),
        (None, Operation.APPEND, "compact", "delete,compact"),
        (None, Operation.SUBTRACT, "delete", ""),
        ("", Operation.APPEND, "compact", "compact"),
        ("compact, delete", Operation.SUBTRACT, "delete", "compact"),
        ("compact,delete", Operation.SUBTRACT, "delete,compact", ""),
    ],
)
def test_lists_grow_and_shrink_from_the_own_value_or_the_default(
    current: str | None, operation: Operation, value: str, after: str
) -> None:
    assert apply_operation(POLICY, current, operation, value) == after


@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
def test_only_lists_grow_and_shrink(operation: Operation) -> None:
    unknown = find_setting(ResourceType.TOPIC, "no.such.setting")
    for setting in (RETENTION, unknown):
        with pytest.raises(InvalidConfig, match=f"{setting.name} because its type is not LIST"):
            apply_operation(setting, "1", operation, "2")


@pytest.mark.parametrize("operation", [Operation.SET, Operation.APPEND, Operation.SUBTRACT])
def test_null_is_a_fault_of_the_request(operation: Operation) -> None:
    with pytest.raises(InvalidConfigRequest, match=r"cleanup\.policy"):
        apply_operation(POLICY, None, operation, None)


def test_an_operation_may_come_as_the_protocols_number() -> None:
    assert apply_operation(POLICY, "delete", 2, "compact") == "delete,compact"
    with pytest.raises(InvalidConfigRequest, match="Unknown operation 7"):
        apply_operation(POLICY, "delete", 7, "compact")


elements = st.lists(st.sampled_from("abcdef"), max_size=5).map(",".join)


@given(elements, elements)
def test_append_keeps_what_was_there_and_adds_each_once(current: str, value: str) -> None:
    after = apply_operation(POLICY, current, Operation.APPEND, value)
    assert after is not None
    assert split_list(after) == split_list(f"{current},{value}".strip(","))


@given(elements, elements)
def test_subtract_leaves_none_of_it(current: str, value: str) -> None:
    after = apply_operation(POLICY, current, Operation.SUBTRACT, value)
    assert after is not None
    assert set(split_list(after)) == set(split_list(current)) - set(split_list(value))


def test_settings_are_found_by_resource() -> None:
    assert find_setting(ResourceType.BROKER, "compression.type").dynamic == "cluster"
    assert find_setting(ResourceType.TOPIC, "compression.type").dynamic == ""
    prefixed = find_setting(ResourceType.BROKER, "listener.name.x.plain.sasl.jaas.config")
    assert prefixed.name == "sasl.jaas.config"
    assert find_setting(ResourceType.GROUP, "share.isolation.level").default == "read_uncommitted"
