"""The same bytes as kio, an implementation we share no code with.

kio reads what we wrote and writes it again; we read that. It knows no records and not the newest
versions, fails on tagged fields it does not know, and holds some fields in narrower types (error
codes, durations, times), so the samples keep to values these can hold. What it leaves out is
compared with Kafka's own classes in `tests/conformance`.
"""

import io

import pytest
from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from tests.wire.filling import sample

from barnabas.wire.apis import Api, apis

NEWER_THAN_KIO = {
    ("ApiVersions", 5),
    ("DeleteGroups", 3),
    ("StreamsGroupDescribe", 1),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupTopologyDescriptionUpdate", 0),
    ("TxnOffsetCommit", 6),
    ("UnregisterController", 0),
}


@pytest.mark.parametrize("api", apis(), ids=lambda api: api.name)
def test_kio_writes_the_same_bytes(api: Api) -> None:
    for version in api.versions:
        try:
            schemas = load_request_schema(api.key, version), load_response_schema(api.key, version)
        except (UnknownAPIKey, UnknownEntity):
            assert (api.name, version) in NEWER_THAN_KIO
            continue
        for message, schema in zip((api.request, api.response), schemas, strict=True):
            for written in (message(), sample(message, version)):
                encoded = written.write(version)
                theirs, size_bytes = entity_reader(schema)(encoded, 0)
                assert size_bytes == len(encoded)
                rewritten = io.BytesIO()
                entity_writer(schema)(rewritten, theirs)
                assert rewritten.getvalue() == encoded
                assert message.read_exactly(rewritten.getvalue(), version) == written
