"""Fetching the texts that a schema refers to, directly or not."""

from barnabas.schema_registry import RegisteredSchema, Schema, SchemaReference
from barnabas.schema_registry.client.client import fetch_referenced_texts


def referring(text: str, *names: str) -> Schema:
    return Schema(text, "AVRO", [SchemaReference(name, f"{name}-value", 1) for name in names])


class Registry:
    """Has one version of each subject, all deleted."""

    def __init__(self, **schemas: Schema) -> None:
        self._schemas = schemas

    def get_version(self, subject: str, version: int, deleted: bool = False) -> RegisteredSchema:
        assert deleted, f"version {version} of {subject} is found among the deleted ones alone"
        schema = self._schemas[subject.removesuffix("-value")]
        return RegisteredSchema(subject, version, 7, None, schema)


def test_each_referenced_text_follows_those_that_it_refers_to() -> None:
    registry = Registry(
        base=referring("b"), left=referring("l", "right", "base"), right=referring("r", "base")
    )
    top = referring("t", "base", "left", "right")
    assert list(fetch_referenced_texts(top, registry).items()) == [
        ("base", "b"),
        ("right", "r"),
        ("left", "l"),
    ]


def test_a_schema_without_references_sends_no_request() -> None:
    assert fetch_referenced_texts(Schema("t"), client=None) == {}
