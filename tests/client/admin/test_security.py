"""Access rules, SCRAM users and quotas, of Barnabas and of the real Kafka."""

from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka.admin
import pytest
from tests.client.admin.clients import SILENT
from tests.conformance.brokers import PeerBroker, is_peer_installed
from tests.wait import wait_until

from barnabas.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    KafkaError,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

EVERYTHING = AclBindingFilter("any", None, "any", None, None, "any", "any")
PASSWORD = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)


def a_rule(name: str) -> AclBinding:
    return AclBinding("topic", name, "literal", "User:klamm", "*", "read", "allow")


def soon(result: Callable[[], Any], expected: Any) -> None:
    """Brokers learn of what controllers decide a little later."""
    wait_until(lambda: result() == expected, f"{expected} is returned", 10)


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.describe_acls(EVERYTHING),
        lambda admin: admin.create_acls([a_rule("t")])[a_rule("t")],
        lambda admin: admin.delete_acls([EVERYTHING])[EVERYTHING],
    ],
)
def test_acls_need_an_authorizer(admin: AdminClient, call: Any) -> None:
    error = call(admin).exception(30).args[0]
    assert error == KafkaError.SECURITY_DISABLED
    assert "authorizer.class.name=acl" in error.str()


def test_enum_members_can_be_given_by_name() -> None:
    rule = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        "User:klamm",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    assert rule == a_rule("t")
    assert rule in {a_rule("t")}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("any", "t", "literal", "User:k", "*", "read", "allow"), ValueError),
        (("topic", None, "literal", "User:k", "*", "read", "allow"), ValueError),
        (("topic", "t", "match", "User:k", "*", "read", "allow"), ValueError),
        (("topic", "t", None, "User:k", "*", "read", "allow"), ValueError),
        (("tpoic", "t", "literal", "User:k", "*", "read", "allow"), ValueError),
        (("topic", 5, "literal", "User:k", "*", "read", "allow"), TypeError),
    ],
)
def test_an_acl_binding_needs_all_its_fields(
    arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        AclBinding(*arguments)
    with pytest.raises(error):
        confluent_kafka.admin.AclBinding(*arguments)


@pytest.mark.parametrize(
    ("alteration", "error"),
    [
        (UserScramCredentialUpsertion("", PASSWORD, b"?"), ValueError),
        (UserScramCredentialUpsertion("k", PASSWORD, b""), ValueError),
        (UserScramCredentialUpsertion("k", PASSWORD, b"?", b""), ValueError),
        (UserScramCredentialUpsertion("k", PASSWORD, "?"), TypeError),
        (UserScramCredentialUpsertion("k", None, b"?"), TypeError),
        (UserScramCredentialDeletion("k", "SCRAM"), TypeError),
    ],
)
def test_an_invalid_credential_alteration_is_rejected(
    admin: AdminClient, alteration: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.alter_user_scram_credentials([alteration])


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real Kafka, with rules."""
    if not is_peer_installed():
        pytest.skip("the real Kafka is not here: set PEERS to the folder of its script")
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    kafka = PeerBroker(tmp_path_factory.mktemp("secured"), settings=settings)
    kafka.start()
    yield kafka.bootstrap
    kafka.stop()


@pytest.mark.peer
class TestKafka:
    @pytest.fixture
    def admin(self, secured: str) -> Iterator[AdminClient]:
        with AdminClient({"bootstrap.servers": secured}) as admin:
            yield admin

    @pytest.fixture
    def theirs(self, secured: str) -> Any:
        return confluent_kafka.admin.AdminClient({"bootstrap.servers": secured, **SILENT})

    def test_acls_are_created_described_and_deleted(
        self, admin: AdminClient, theirs: Any, name: str
    ) -> None:
        rule = a_rule(name)
        match = AclBindingFilter("topic", name, "literal", None, None, "any", "any")
        assert admin.create_acls([rule])[rule].result(30) is None
        soon(lambda: admin.describe_acls(match).result(30), [rule])
        same = confluent_kafka.admin.AclBindingFilter(
            "topic", name, "literal", None, None, "any", "any"
        )
        assert [str(each) for each in theirs.describe_acls(same).result(30)] == [str(rule)]
        assert admin.delete_acls([match])[match].result(30) == [rule]
        soon(lambda: admin.describe_acls(match).result(30), [])


@pytest.fixture(params=["barnabas", pytest.param("kafka", marks=pytest.mark.peer)])
def target(request: pytest.FixtureRequest) -> str:
    """The address of a cluster of each kind."""
    if request.param == "kafka":
        return str(request.getfixturevalue("secured"))
    return str(request.getfixturevalue("broker").bootstrap_servers)


@pytest.fixture
def target_admin(target: str) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": target}) as admin:
        yield admin


@pytest.fixture
def theirs(target: str) -> Any:
    return confluent_kafka.admin.AdminClient({"bootstrap.servers": target, **SILENT})


def test_scram_credentials_are_set_and_deleted(
    target_admin: AdminClient, theirs: Any, name: str
) -> None:
    setting = UserScramCredentialUpsertion(name, PASSWORD, b"k.")
    assert target_admin.alter_user_scram_credentials([setting])[name].result(30) is None

    def known(client: Any) -> list[int]:
        described = client.describe_user_scram_credentials().result(30)
        if name not in described:
            return []
        return sorted(each.iterations for each in described[name].scram_credential_infos)

    soon(lambda: known(target_admin), [8192])
    assert known(theirs) == [8192]
    their_info = confluent_kafka.admin.ScramCredentialInfo(
        confluent_kafka.admin.ScramMechanism.SCRAM_SHA_512, 4096
    )
    upsertion = confluent_kafka.admin.UserScramCredentialUpsertion(name, their_info, b"other")
    theirs.alter_user_scram_credentials([upsertion])[name].result(30)
    soon(lambda: known(target_admin), [4096, 8192])
    for mechanism in ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512:
        deletion = UserScramCredentialDeletion(name, mechanism)
        target_admin.alter_user_scram_credentials([deletion])[name].result(30)
    soon(lambda: known(target_admin), [])

    outcomes = target_admin.describe_user_scram_credentials([name])
    assert outcomes[name].exception(30).args[0] == KafkaError.RESOURCE_NOT_FOUND
    few = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 10)
    refused = target_admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(name, few, b"k.")]
    )
    assert refused[name].exception(30).args[0] == KafkaError.UNACCEPTABLE_CREDENTIAL


def test_quotas_are_set_described_and_removed(target_admin: AdminClient, name: str) -> None:
    entity = ClientQuotaEntity({"user": name, "client-id": None})
    setting = ClientQuotaAlteration(entity, {"producer_byte_rate": 1024.0})
    assert target_admin.alter_client_quotas([setting])[entity].result(30) is None
    component = ClientQuotaFilterComponent.of_entity("user", name)
    match = ClientQuotaFilter.contains([component])
    soon(
        lambda: target_admin.describe_client_quotas(match).result(30),
        {entity: {"producer_byte_rate": 1024.0}},
    )
    only = ClientQuotaFilter.contains_only([component])
    assert target_admin.describe_client_quotas(only).result(30) == {}
    taking = ClientQuotaAlteration(entity, {"producer_byte_rate": None})
    target_admin.alter_client_quotas([taking])[entity].result(30)
    soon(lambda: target_admin.describe_client_quotas(match).result(30), {})
    wrong = ClientQuotaAlteration(entity, {"no_such_rate": 1.0})
    refused = target_admin.alter_client_quotas([wrong])[entity].exception(30)
    assert refused.args[0] == KafkaError.INVALID_REQUEST
