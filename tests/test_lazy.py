"""Lazy imports load only the modules that are used."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("statement", "unneeded"),
    [
        ("import barnabas, barnabas.testing, barnabas.aio", "asyncio barnabas.client"),
        ("from barnabas import Producer", "barnabas.config.broker barnabas.client.consumer"),
        ("from barnabas import Producer", "importlib.metadata pyarrow"),
        ("from barnabas.aio import Consumer", "barnabas.client.admin.client pyarrow"),
        ("from barnabas import Producer; Producer({})", "cryptography"),
        ("from barnabas.node import Node; from barnabas.node.node import *", "cryptography jwt"),
        ("from barnabas import TopicPartition, Uuid", "asyncio barnabas.net"),
        (
            "import barnabas.cli.commands.up, barnabas.cli.banner, barnabas.cli.foreground",
            "barnabas.client barnabas.registry",
        ),
        ("import barnabas.schema_registry", "urllib3 fastavro jsonschema google.protobuf"),
        ("import barnabas.schema_registry.avro", "urllib3 jsonschema google.protobuf"),
    ],
)
def test_unused_modules_are_not_loaded(statement: str, unneeded: str) -> None:
    program = f"{statement}; import sys; print(*({{*{unneeded.split()}}} & {{*sys.modules}}))"
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert completed.stdout.split() == []


def test_a_name_is_the_same_object_in_every_package() -> None:
    import barnabas.aio
    from barnabas.client.consumer import AioConsumer

    assert barnabas.aio.Consumer is barnabas.aio.AIOConsumer is AioConsumer


def test_a_missing_name_is_an_attribute_error() -> None:
    import barnabas.config

    with pytest.raises(AttributeError, match=r"'barnabas\.config' has no attribute 'Castle'"):
        barnabas.config.Castle  # type: ignore[attr-defined]  # noqa: B018
