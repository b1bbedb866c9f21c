"""The codec writes the same bytes as kio, an independent implementation.

kio reads our messages and writes them again, and we read those. It does not have records and the
newest versions, fails on unknown tagged fields, and has narrower types for some fields (error
codes, durations, times), so the samples have small values. `tests/conformance` compares all
messages with Kafka's classes.
"""

import io

import pytest
from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from tests.wire.message_samples import sample

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
