"""The operations of IncrementalAlterConfigs on one value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config import (
    ConfigOperation,
    ConfigResourceType,
    InvalidConfig,
    InvalidConfigRequest,
    apply_operation,
    find_setting,
)
from barnabas.config.setting import split_list

POLICY = find_setting(ConfigResourceType.TOPIC, "cleanup.policy")
RETENTION = find_setting(ConfigResourceType.TOPIC, "retention.ms")


def test_set_replaces_and_delete_removes_a_value() -> None:
    assert apply_operation(RETENTION, "1", ConfigOperation.SET, "2") == "2"
    assert apply_operation(RETENTION, "1", ConfigOperation.DELETE, None) is None
    assert apply_operation(RETENTION, "1", ConfigOperation.DELETE, "ignored") is None


@pytest.mark.parametrize(
    ("current", "operation", "value", "after"),
    [
        ("delete", ConfigOperation.APPEND, "compact", "delete,compact"),
        ("delete", ConfigOperation.APPEND, "delete", "delete"),
        (None, ConfigOperation.APPEND, "compact", "delete,compact"),
        (None, ConfigOperation.SUBTRACT, "delete", ""),
        ("", ConfigOperation.APPEND, "compact", "compact"),
        ("compact, delete", ConfigOperation.SUBTRACT, "delete", "compact"),
        ("compact,delete", ConfigOperation.SUBTRACT, "delete,compact", ""),
    ],
)
def test_append_and_subtract_start_from_the_own_value_or_the_default(
    current: str | None, operation: ConfigOperation, value: str, after: str
) -> None:
    assert apply_operation(POLICY, current, operation, value) == after


@pytest.mark.parametrize("operation", [ConfigOperation.APPEND, ConfigOperation.SUBTRACT])
def test_append_and_subtract_need_a_list(operation: ConfigOperation) -> None:
    unknown = find_setting(ConfigResourceType.TOPIC, "no.such.setting")
    for setting in (RETENTION, unknown):
        with pytest.raises(InvalidConfig, match=f"{setting.name} because its type is not LIST"):
            apply_operation(setting, "1", operation, "2")


@pytest.mark.parametrize(
    "operation", [ConfigOperation.SET, ConfigOperation.APPEND, ConfigOperation.SUBTRACT]
)
def test_a_null_value_is_an_invalid_request(operation: ConfigOperation) -> None:
    with pytest.raises(InvalidConfigRequest, match=r"cleanup\.policy"):
        apply_operation(POLICY, None, operation, None)


def test_an_operation_can_be_the_number_of_the_protocol() -> None:
    assert apply_operation(POLICY, "delete", 2, "compact") == "delete,compact"
    with pytest.raises(InvalidConfigRequest, match="Unknown operation 7"):
        apply_operation(POLICY, "delete", 7, "compact")


elements = st.lists(st.sampled_from("abcdef"), max_size=5).map(",".join)


@given(elements, elements)
def test_append_keeps_existing_elements_and_adds_new_ones_once(current: str, value: str) -> None:
    after = apply_operation(POLICY, current, ConfigOperation.APPEND, value)
    assert after is not None
    assert split_list(after) == split_list(f"{current},{value}".strip(","))


@given(elements, elements)
def test_subtract_removes_every_listed_element(current: str, value: str) -> None:
    after = apply_operation(POLICY, current, ConfigOperation.SUBTRACT, value)
    assert after is not None
    assert set(split_list(after)) == set(split_list(current)) - set(split_list(value))


def test_find_setting_returns_the_declaration_for_the_resource() -> None:
    assert find_setting(ConfigResourceType.BROKER, "compression.type").update == "cluster"
    assert find_setting(ConfigResourceType.TOPIC, "compression.type").update == ""
    prefixed = find_setting(ConfigResourceType.BROKER, "listener.name.x.plain.sasl.jaas.config")
    assert prefixed.name == "sasl.jaas.config"
    assert (
        find_setting(ConfigResourceType.GROUP, "share.isolation.level").default
        == "read_uncommitted"
    )
