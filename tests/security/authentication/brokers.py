"""A broker whose listener for clients has SASL, with users of every mechanism."""

from typing import Any

from tests.security.authentication.stepping import a_credential

from barnabas.controller.context import NODE
from barnabas.decision import Decision
from barnabas.security.scram_credentials import ScramMechanismCode
from barnabas.testing import Broker
from barnabas.wire.messages.metadata_records import UserScramCredentialRecord

USER, PASSWORD = "alice", "wonder land"
SCRAM = (ScramMechanismCode.SCRAM_SHA_256, ScramMechanismCode.SCRAM_SHA_512)

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
    """Writes the credentials of a user to the metadata log, for both mechanisms."""
    records = []
    for mechanism in SCRAM:
        credential = a_credential(mechanism, password, b"a salt of the test")
        records.append(
            UserScramCredentialRecord(
                name=user,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )
        )

    async def append() -> None:
        controller: Any = broker._node.controller
        active = controller._require_active()
        active.decide(lambda *_: Decision(records, None), None, NODE)
        await controller._wait_published(active, 0)

    broker._run(append())
