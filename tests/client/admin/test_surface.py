"""`barnabas.admin` has the names and parameters of `confluent_kafka.admin`, plain and asyncio."""

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
"""Keywords of the compiled half of confluent_kafka, whose signatures cannot be inspected."""


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a method without its first one."""
    _, *others = inspect.signature(function).parameters.items()
    return dict(others)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_confluent_kafka_is_exported(name: str) -> None:
    if name.isupper():
        assert getattr(ours, name) == getattr(theirs, name)
    assert name in ours.__all__


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_the_arguments_of_confluent_kafka(name: str) -> None:
    try:
        expected = list(parameters(getattr(theirs.AdminClient, name)))
    except ValueError:  # compiled
        return
    positional = [
        parameter.name
        for parameter in parameters(getattr(ours.AdminClient, name)).values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if expected != ["args", "kwargs"]:
        assert positional == [name for name in expected if name != "kwargs"]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_of_confluent_kafka_is_a_parameter(name: str) -> None:
    assert OPTIONS[name] <= parameters(getattr(ours.AdminClient, name)).keys()


@pytest.mark.parametrize("name", [name for name in dir(AioAdminClient) if not name.startswith("_")])
def test_plain_and_asyncio_methods_have_the_same_parameters(name: str) -> None:
    plain, aio = getattr(ours.AdminClient, name), getattr(AioAdminClient, name)
    assert parameters(plain) == parameters(aio)
    assert plain.__doc__, "every public method is documented"
    variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert not variadic & {parameter.kind for parameter in parameters(plain).values()}


@pytest.mark.parametrize(
    ("module", "home", "name"),
    [(theirs, ours, name) for name in NAMES if inspect.isclass(getattr(theirs, name))]
    + [(confluent_kafka, barnabas, name) for name in TOP_LEVEL],
)
def test_every_class_has_the_constructor_of_confluent_kafka(
    module: Any, home: Any, name: str
) -> None:
    expected, mine = getattr(module, name), getattr(home, name)
    if issubclass(expected, enum.Enum):
        members = {member.name: member.value for member in expected}
        assert members.items() <= {member.name: member.value for member in mine}.items()
        return
    try:
        signature = inspect.signature(expected)
    except ValueError:  # compiled
        return
    if issubclass(expected, BaseException) or name in ("AdminClient", "OffsetSpec"):
        return
    actual = list(inspect.signature(mine).parameters.values())
    for position, parameter in enumerate(signature.parameters.values()):
        assert actual[position].name == parameter.name
        if isinstance(parameter.default, int | type):  # nothing that is made anew each time
            assert actual[position].default == parameter.default


@pytest.mark.parametrize("name", ["NewTopic", "NewPartitions"])
@pytest.mark.parametrize("arguments", [("t", 3), ("t", 4), ("u", 3)])
def test_values_compare_and_print_like_those_of_confluent_kafka(
    name: str, arguments: tuple[Any, ...]
) -> None:
    mine, other = getattr(ours, name), getattr(theirs, name)
    assert str(mine(*arguments)) == str(other(*arguments))
    for against in ("t", 3), ("t", 4):
        assert (mine(*arguments) == mine(*against)) == (other(*arguments) == other(*against))
        assert (mine(*arguments) < mine(*against)) == (other(*arguments) < other(*against))


def test_a_uuid_prints_like_that_of_confluent_kafka() -> None:
    bits = -5405577438467340550, -7909266563406858801
    assert str(barnabas.Uuid(*bits)) == str(confluent_kafka.Uuid(*bits))
    assert barnabas.Uuid(*bits) == barnabas.Uuid.from_bytes(bytes(barnabas.Uuid(*bits)))
    assert barnabas.Uuid(*bits).get_most_significant_bits() == bits[0]


def test_plain_and_asyncio_clients_have_the_same_methods() -> None:
    plain = {name for name in dir(ours.AdminClient) if not name.startswith("_")}
    assert {name for name in plain if not hasattr(AioAdminClient, name)} == {"poll"}
    assert {name for name in dir(AioAdminClient) if not name.startswith("_")} <= plain
