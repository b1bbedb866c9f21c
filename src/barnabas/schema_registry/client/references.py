"""The texts that a schema refers to, which a registry keeps as schemas of their own."""

from typing import Any


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
