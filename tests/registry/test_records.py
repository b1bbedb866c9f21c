"""The bytes of records in `_schemas`, as Confluent's registry reads and compacts them."""

import pytest

from barnabas.registry.config import CompatibilityLevel, SubjectConfig
from barnabas.registry.definitions import (
    RegistryMetadata,
    RegistryReference,
    RegistryRule,
    RegistryRuleSet,
    SchemaDefinition,
)
from barnabas.registry.records import (
    ClearSubjectKey,
    ClearSubjectValue,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ContextValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    ModeKey,
    ModeValue,
    NoopKey,
    RegistryMode,
    RegistryRecord,
    SchemaKey,
    SchemaValue,
    UnreadableRecordError,
    decode_record,
    encode_record,
    noop_record,
)

ORDERS = SchemaKey("orders", 2)
FULLY = SubjectConfig(compatibility_level=CompatibilityLevel.FULL)
RULES = RegistryRuleSet(
    domain_rules=(RegistryRule(name="check", kind="CONDITION", mode="WRITE", type="CEL"),)
)
FULL = SchemaDefinition(
    '"string"',
    "AVRO",
    (RegistryReference("Item", "items", 3),),
    RegistryMetadata(
        tags=(("a", ("PII", "X")),), properties=(("owner", "me"),), sensitive=("owner",)
    ),
    RULES,
)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (
            RegistryRecord(ORDERS, SchemaValue("orders", 2, 7, SchemaDefinition('"int"'))),
            b'{"keytype":"SCHEMA","subject":"orders","version":2,"magic":1}',
            b'{"subject":"orders","version":2,"id":7,"schemaType":"AVRO","schema":"\\"int\\"",'
            b'"deleted":false}',
        ),
        (
            RegistryRecord(ORDERS, SchemaValue("orders", 2, 7, FULL, deleted=True)),
            b'{"keytype":"SCHEMA","subject":"orders","version":2,"magic":1}',
            b'{"subject":"orders","version":2,"id":7,"schemaType":"AVRO","references":'
            b'[{"name":"Item","subject":"items","version":3}],"metadata":{"tags":{"a":'
            b'["PII","X"]},"properties":{"owner":"me"},"sensitive":["owner"]},"ruleSet":'
            b'{"domainRules":[{"name":"check","kind":"CONDITION","mode":"WRITE","type":"CEL",'
            b'"disabled":false}]},"schema":"\\"string\\"","deleted":true}',
        ),
        (
            RegistryRecord(ORDERS),
            b'{"keytype":"SCHEMA","subject":"orders","version":2,"magic":1}',
            None,
        ),
        (
            RegistryRecord(ConfigKey(None), ConfigValue(None, FULLY)),
            b'{"keytype":"CONFIG","magic":0}',
            b'{"compatibilityLevel":"FULL"}',
        ),
        (
            RegistryRecord(
                ConfigKey("s"), ConfigValue("s", SubjectConfig(alias="t", normalize=True))
            ),
            b'{"keytype":"CONFIG","subject":"s","magic":0}',
            b'{"subject":"s","alias":"t","normalize":true}',
        ),
        (
            RegistryRecord(ModeKey("s"), ModeValue("s", RegistryMode.IMPORT)),
            b'{"keytype":"MODE","subject":"s","magic":0}',
            b'{"subject":"s","mode":"IMPORT"}',
        ),
        (
            RegistryRecord(DeleteSubjectKey("s"), DeleteSubjectValue("s", 4)),
            b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
            b'{"subject":"s","version":4}',
        ),
        (
            RegistryRecord(ClearSubjectKey("s"), ClearSubjectValue("s")),
            b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}',
            b'{"subject":"s"}',
        ),
        (
            RegistryRecord(ContextKey(".staging"), ContextValue(".staging")),
            b'{"keytype":"CONTEXT","tenant":"default","context":".staging","magic":0}',
            b'{"tenant":"default","context":".staging"}',
        ),
        (RegistryRecord(NoopKey()), b'{"keytype":"NOOP","magic":0}', None),
        (noop_record({".": 7}), b'{"keytype":"NOOP","magic":0}', b'{"maxIds":{".":7}}'),
    ],
)
def test_a_record_has_confluents_bytes_and_is_decoded_from_them(
    record: RegistryRecord, key: bytes, value: bytes | None
) -> None:
    assert encode_record(record) == (key, value)
    assert decode_record(key, value) == record


def test_fields_that_older_registries_omit_get_their_defaults() -> None:
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":0}'
    record = decode_record(key, b'{"subject":"s","version":1,"id":1,"schema":"\\"int\\""}', 12)
    assert record.value == SchemaValue("s", 1, 1, SchemaDefinition('"int"'), timestamp_ms=12)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"not json", b"{}"),
        (b"[]", b"{}"),
        (b'{"keytype":"ASSOC"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":7}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"[1]"),
        (b'{"keytype":"MODE","magic":0}', b'{"mode":"WRONG"}'),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"WRONG"}'),
        (b'{"keytype":"CONFIG","subject":["s"],"magic":0}', b"{}"),
        (b'{"keytype":"CONTEXT","context":5,"magic":0}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":7,"version":1,"magic":1}', b'{"id":1,"schema":""}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":"1","magic":1}', b'{"id":1,"schema":""}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":"1","schema":""}'),
        (b'{"keytype":"CONFIG","magic":0}', b'{"alias":"\\ud800"}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"version":"all"}'),
        (b"[" * 100_000, b"{}"),
        (b'{"keytype":"MODE","magic":0}', b"[" * 100_000),
    ],
)
def test_a_record_of_another_format_is_unreadable(key: bytes | None, value: bytes) -> None:
    with pytest.raises(UnreadableRecordError):
        decode_record(key, value)


def test_a_guid_is_a_digest_of_text_references_metadata_and_rules() -> None:
    assert SchemaDefinition('"string"').guid == "095d71cf-1255-6b9d-5e33-0ad575b3df5d"
    others = {
        SchemaDefinition('"string"', metadata=RegistryMetadata()).guid,
        FULL.guid,
        SchemaDefinition('"int"').guid,
    }
    assert len(others | {SchemaDefinition('"string"').guid}) == 4
