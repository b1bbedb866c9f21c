"""A broker whose listener for clients has SASL, with users of every mechanism."""

from barnabas.security.scram_credentials import MIN_ITERATIONS, ScramMechanismCode, salt_password
from barnabas.testing import Broker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

USER, PASSWORD = "alice", "wonder land"
SALT = b"a salt of the test"

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="node" password="of the node" user_node="of the node" user_{USER}="{PASSWORD}";'
)


def sasl_broker(**overrides: str) -> Broker:
    """A broker that serves clients over SASL_PLAINTEXT. `_` in the names stands for a dot."""
    return Broker(
        {
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
            **{name.replace("_", "."): value for name, value in overrides.items()},
        }
    )


def add_scram_user(broker: Broker, user: str, password: str) -> None:
    """Adds the credentials of a user, for both mechanisms."""
    for mechanism in ScramMechanismCode:
        salted = salt_password(mechanism, password.encode(), SALT, MIN_ITERATIONS)
        upsertion = ScramCredentialUpsertion(
            name=user,
            mechanism=mechanism,
            iterations=MIN_ITERATIONS,
            salt=SALT,
            salted_password=salted,
        )
        _alter(broker, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


def delete_scram_user(broker: Broker, user: str, mechanism: ScramMechanismCode) -> None:
    deletion = ScramCredentialDeletion(name=user, mechanism=mechanism)
    _alter(broker, AlterUserScramCredentialsRequest(deletions=[deletion]))


def _alter(broker: Broker, request: AlterUserScramCredentialsRequest) -> None:
    response = broker._run(broker._node.controller.handle(request))
    assert [result.error_code for result in response.results] == [ErrorCode.NONE]
