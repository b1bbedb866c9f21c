"""The schema that a serializer was given, and those that it refers to."""

from typing import Any

from barnabas.registry.client.schemas import Schema


def given_schema(schema: Any, schema_type: str) -> Any:
    """A text, or a Schema of either library; None where none was given."""
    if schema is None or hasattr(schema, "schema_str"):
        return schema
    if not isinstance(schema, str):
        raise TypeError(f"a schema must be a str or a Schema, not {type(schema).__name__}")
    return Schema(schema, schema_type)


def referenced_texts(schema: Any, client: Any) -> dict[str, str]:
    """Their texts by the names they are referred to by; what is referred to comes first."""
    texts: dict[str, str] = {}
    _collect(schema, client, texts)
    return texts


def _collect(schema: Any, client: Any, texts: dict[str, str]) -> None:
    for reference in schema.references or ():
        if reference.name in texts:
            continue
        # Deleted versions too: what was written with them is still to be read.
        version = client.get_version(reference.subject, reference.version, True)
        _collect(version.schema, client, texts)
        texts[reference.name] = version.schema.schema_str
