"""The lines about users, delegation tokens and quotas."""

import pytest
from tests.log_records import barnabas_log_lines

from barnabas.controller.change_log import MetadataChanges
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.metadata_records import (
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.wire.schema import Message

SHA_256, SHA_512 = 1, 2
DAY_MS = 86_400_000


def lines(
    caplog: pytest.LogCaptureFixture, *records: Message, image: MetadataImage | None = None
) -> list[str]:
    caplog.set_level("INFO", "barnabas.controller.security_change_log")
    MetadataChanges.of(records, image or MetadataImage()).log()
    return barnabas_log_lines(caplog)


def test_credentials_have_a_line_for_each_user(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(
        caplog,
        UserScramCredentialRecord(name="alice", mechanism=SHA_256, salt=b"salt"),
        UserScramCredentialRecord(name="alice", mechanism=SHA_512, stored_key=b"key"),
        RemoveUserScramCredentialRecord(name="bob", mechanism=SHA_512),
    ) == [
        "credentials of user 'alice': SCRAM-SHA-256 is set, SCRAM-SHA-512 is set",
        "credentials of user 'bob': SCRAM-SHA-512 is removed",
    ]


def test_tokens_are_created_renewed_and_removed(caplog: pytest.LogCaptureFixture) -> None:
    token = DelegationTokenRecord(owner="User:a", token_id="t", expiration_timestamp=DAY_MS)
    image = MetadataImage()
    image.apply(token, MetadataDelta())
    assert lines(caplog, token) == [
        "delegation token 't' of 'User:a' is created, until 1970-01-02 00:00 UTC"
    ]
    caplog.clear()
    assert lines(caplog, token, image=image) == [
        "delegation token 't' of 'User:a' is renewed, until 1970-01-02 00:00 UTC"
    ]
    caplog.clear()
    assert lines(caplog, RemoveDelegationTokenRecord(token_id="t"), image=image) == [
        "delegation token 't' of 'User:a' is removed"
    ]


def test_quotas_have_a_line_for_each_entity(caplog: pytest.LogCaptureFixture) -> None:
    entity = [
        EntityData(entity_type="user", entity_name="alice"),
        EntityData(entity_type="client-id", entity_name=None),
    ]
    assert lines(
        caplog,
        ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1024.0),
        ClientQuotaRecord(entity=entity, key="request_percentage", remove=True),
    ) == [
        "quotas of user 'alice', the default client-id: producer_byte_rate = 1024, "
        "request_percentage is removed"
    ]


def test_names_cannot_write_lines_and_many_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    names = ["a\nERROR: b", *(f"user-{number}" for number in range(30))]
    written = lines(
        caplog, *(UserScramCredentialRecord(name=name, mechanism=SHA_256) for name in names)
    )
    assert len(written) == 21
    assert written[-1] == "11 more users have changed"
    assert not any("\n" in line for line in written)
