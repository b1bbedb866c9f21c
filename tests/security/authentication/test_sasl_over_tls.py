"""SASL_SSL: the password is sent only over TLS, and the session works as without it."""

from pathlib import Path

import confluent_kafka
import pytest
from tests.security.authentication.brokers import PASSWORD, USER, add_scram_user, sasl_broker
from tests.security.authentication.test_clients import TOPIC, WrongCredentialsError, produce
from tests.tls_certificates import castle_authority

import barnabas


@pytest.mark.parametrize("module", [confluent_kafka, barnabas])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_client_logs_in_over_tls(tmp_path: Path, module: object, mechanism: str) -> None:
    authority = castle_authority()
    issued = authority.issue("CN=broker", hosts=("127.0.0.1", "localhost"))
    overrides = {
        "listener_security_protocol_map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": issued.write_pem(tmp_path, "broker"),
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": authority.write_pem(tmp_path),
    }
    with sasl_broker(**overrides) as broker:
        broker.create_topic(TOPIC, 1)
        add_scram_user(broker, USER, PASSWORD)
        for password in (PASSWORD, "guessed"):
            errors: list[object] = []
            producer = module.Producer(  # type: ignore[attr-defined]
                {
                    "bootstrap.servers": broker.bootstrap_servers,
                    "security.protocol": "SASL_SSL",
                    "ssl.ca.location": overrides["ssl_truststore_location"],
                    "sasl.mechanism": mechanism,
                    "sasl.username": USER,
                    "sasl.password": password,
                    "error_cb": errors.append,
                }
            )
            code = barnabas.KafkaError._AUTHENTICATION
            if password == PASSWORD:
                produce(producer, errors, code)
            else:
                with pytest.raises(WrongCredentialsError):
                    produce(producer, errors, code)
