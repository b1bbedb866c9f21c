"""`barnabas.admin` has all that `confluent_kafka.admin` has, and takes the same arguments."""

import enum
import inspect
from typing import Any

import confluent_kafka
import confluent_kafka.admin as theirs
import pytest

import barnabas
import barnabas.admin as ours
from barnabas.client.admin import AioAdminClient

NAMES = sorted(
    name
    for name, value in vars(theirs).items()
    if name.isupper() or (inspect.isclass(value) and "typing" not in value.__module__)
    if not name.startswith("_") and name != "string_type"
)
TOP_LEVEL = [
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "ElectionType",
    "IsolationLevel",
    "Node",
    "TopicCollection",
    "TopicPartitionInfo",
]
METHODS = sorted(name for name in dir(theirs.AdminClient) if not name.startswith("_"))

OPTIONS = {
    "create_topics": {"validate_only", "request_timeout", "operation_timeout"},
    "delete_topics": {"request_timeout", "operation_timeout"},
    "create_partitions": {"validate_only", "request_timeout", "operation_timeout"},
    "describe_topics": {"request_timeout", "include_authorized_operations"},
    "describe_cluster": {"request_timeout", "include_authorized_operations"},
    "describe_consumer_groups": {"request_timeout", "include_authorized_operations"},
    "list_consumer_groups": {"request_timeout", "states", "types"},
    "list_consumer_group_offsets": {"request_timeout", "require_stable"},
    "alter_consumer_group_offsets": {"request_timeout"},
    "delete_consumer_groups": {"request_timeout"},
    "create_acls": {"request_timeout"},
    "describe_acls": {"request_timeout"},
    "delete_acls": {"request_timeout"},
    "describe_configs": {"request_timeout", "broker"},
    "alter_configs": {"validate_only", "request_timeout", "broker"},
    "incremental_alter_configs": {"validate_only", "request_timeout", "broker"},
    "describe_user_scram_credentials": {"request_timeout"},
    "alter_user_scram_credentials": {"request_timeout"},
    "list_offsets": {"request_timeout", "isolation_level"},
    "delete_records": {"request_timeout", "operation_timeout"},
    "elect_leaders": {"request_timeout", "operation_timeout"},
}
"""Keywords that their compiled half takes: it cannot be asked for them."""


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    if name.isupper():
        assert getattr(ours, name) == getattr(theirs, name)
    assert name in ours.__all__


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_the_same_arguments(name: str) -> None:
    mine = getattr(ours.AdminClient, name)
    try:
        wanted = parameters(getattr(theirs.AdminClient, name))
    except ValueError:  # compiled
        return
    if wanted != ["args", "kwargs"]:
        assert parameters(mine) == wanted


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_understood(name: str) -> None:
    assert OPTIONS[name] <= set(parameters(getattr(AioAdminClient, name)))


@pytest.mark.parametrize(
    ("module", "home", "name"),
    [(theirs, ours, name) for name in NAMES if inspect.isclass(getattr(theirs, name))]
    + [(confluent_kafka, barnabas, name) for name in TOP_LEVEL],
)
def test_every_class_is_made_in_the_same_way(module: Any, home: Any, name: str) -> None:
    wanted, mine = getattr(module, name), getattr(home, name)
    if issubclass(wanted, enum.Enum):
        members = {member.name: member.value for member in wanted}
        assert members.items() <= {member.name: member.value for member in mine}.items()
        return
    try:
        signature = inspect.signature(wanted)
    except ValueError:  # compiled
        return
    if issubclass(wanted, BaseException) or name in ("AdminClient", "OffsetSpec"):
        return
    given = list(inspect.signature(mine).parameters.values())
    for place, parameter in enumerate(signature.parameters.values()):
        assert given[place].name == parameter.name
        if isinstance(parameter.default, int | type):  # nothing that is made anew each time
            assert given[place].default == parameter.default


@pytest.mark.parametrize("name", ["NewTopic", "NewPartitions"])
@pytest.mark.parametrize("arguments", [("t", 3), ("t", 4), ("u", 3)])
def test_compiled_values_compare_and_look_alike(name: str, arguments: tuple[Any, ...]) -> None:
    mine, other = getattr(ours, name), getattr(theirs, name)
    assert str(mine(*arguments)) == str(other(*arguments))
    for against in ("t", 3), ("t", 4):
        assert (mine(*arguments) == mine(*against)) == (other(*arguments) == other(*against))
        assert (mine(*arguments) < mine(*against)) == (other(*arguments) < other(*against))


def test_ids_look_alike() -> None:
    bits = -5405577438467340550, -7909266563406858801
    assert str(barnabas.Uuid(*bits)) == str(confluent_kafka.Uuid(*bits))
    assert barnabas.Uuid(*bits) == barnabas.Uuid.from_bytes(bytes(barnabas.Uuid(*bits)))
    assert barnabas.Uuid(*bits).get_most_significant_bits() == bits[0]


def test_the_coroutines_are_all_that_the_plain_client_has() -> None:
    plain = {name for name in dir(ours.AdminClient) if not name.startswith("_")}
    assert {name for name in plain if not hasattr(AioAdminClient, name)} == {"poll"}
    assert {name for name in dir(AioAdminClient) if not name.startswith("_")} <= plain
