"""Any input is parsed or rejected with a SchemaError."""

import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.schemas import SchemaError, SchemaType, parse

AVRO_KEYS = (
    "type name namespace fields items values symbols size default order aliases doc logicalType"
    " precision scale"
)
AVRO_WORDS = "record enum fixed array map int string null A A.B decimal date descending"
JSON_KEYS = (
    "type properties items $ref $id $schema $defs definitions required enum const anyOf oneOf allOf"
    " not maximum minLength pattern additionalProperties patternProperties dependencies if then"
    " prefixItems unevaluatedProperties $dynamicRef $anchor multipleOf uniqueItems format"
)
JSON_WORDS = (
    "object array string # #/definitions/a #/$defs/a a http://a/b http://[ ^( % #%zz #a"
    " https://json-schema.org/draft/2020-12/schema http://json-schema.org/draft-04/schema#"
)


def documents(keys: str, words: str) -> st.SearchStrategy:
    texts = st.sampled_from(words.split())
    scalars = st.one_of(texts, texts, st.none(), st.booleans(), st.integers(-2, 5), st.floats())
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.sampled_from([*keys.split(), "a"]), inner, max_size=5),
        ),
        max_leaves=25,
    )


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_any_json_document_is_parsed_or_rejected(kind: SchemaType) -> None:
    keys, words = (AVRO_KEYS, AVRO_WORDS) if kind is SchemaType.AVRO else (JSON_KEYS, JSON_WORDS)

    @settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
    @given(documents(keys, words), documents(keys, words))
    def check(document: object, referenced: object) -> None:
        with suppress(SchemaError):
            schema = parse(kind, json.dumps(document), {"a": json.dumps(referenced)})
            assert parse(kind, schema.text, {"a": json.dumps(referenced)}).text == schema.text
            schema.find_incompatibilities(schema)

    check()


@given(st.text())
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    for kind in (SchemaType.AVRO, SchemaType.JSON):
        with suppress(SchemaError):
            parse(kind, text, {})
