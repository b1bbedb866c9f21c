"""Security settings: from librdkafka's single names, or Java's stores and JAAS lines.

Python's ssl reads PEM files. A Java store in that format is used as it is; one in another (JKS,
PKCS12) is converted. Without a type, the content of the file shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import oauth_tokens
from barnabas.client.settings.model import Security
from barnabas.net.key_stores import (
    PEM,
    TYPES,
    KeyStore,
    KeyStoreError,
    detect_type,
    read_key_store,
    to_pem,
)
from barnabas.net.sasl import MECHANISMS


def resolve(
    values: Mapping[str, Any], fields: Mapping[str, Any], settings: Mapping[str, Any]
) -> Security:
    """Returns the security of `fields` and of the stores and JAAS lines in `values`.

    Settings that the protocol does not use are ignored, as in Java: files are often shared.
    """
    own = dict(fields)
    protocol = own.get("protocol", Security().protocol)
    stores = (*_truststore(values), *_keystore(values)) if protocol.endswith("SSL") else ()
    login = _login(values) if protocol.startswith("SASL_") else ()
    for field, value in (*stores, *login):
        if own.setdefault(field, value) != value:
            fail(KafkaError._INVALID_ARG, _CONTRADICTIONS[field])
    own["oauth_cb"] = settings.get("oauth_cb") or _tokens(values)
    security = Security(**own)
    if security.protocol.startswith("SASL_"):
        _check_login(security, own)
    return security


_CONTRADICTIONS = {
    "ca_location": '"ssl.ca.location" and "ssl.truststore.location" name different files: keep one',
    "certificate_location": (
        '"ssl.certificate.location" and "ssl.keystore.location" name different files: keep one'
    ),
    "key_location": '"ssl.key.location" and "ssl.keystore.location" name different files: keep one',
    "ca_pem": '"ssl.ca.pem" and "ssl.truststore.location" are both set: keep one',
    "certificate_pem": '"ssl.certificate.pem" and "ssl.keystore.location" are both set: keep one',
    "key_pem": '"ssl.key.pem" and "ssl.keystore.location" are both set: keep one',
    "username": '"sasl.username" and "sasl.jaas.config" name different users: keep one',
    "password": '"sasl.password" and "sasl.jaas.config" have different passwords: keep one',
    "kerberos_service": '"sasl.kerberos.service.name" and serviceName of "sasl.jaas.config" differ',
    "kerberos_principal": '"sasl.kerberos.principal" and "sasl.jaas.config" differ: keep one',
    "kerberos_keytab": '"sasl.kerberos.keytab" and "sasl.jaas.config" differ: keep one',
}


def _truststore(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    location = values.get("ssl.truststore.location")
    if not location:
        return []
    store = _read_store(values, "truststore", location)
    if store is None:
        return [("ca_location", location)]
    own = (certificate for entry in store.keys for certificate in entry.chain[:1])
    certificates = (*own, *store.certificates)
    if not certificates:
        _fail_store("truststore", location, "it has no certificate to trust")
    return [("ca_pem", to_pem(certificates))]


def _keystore(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    location = values.get("ssl.keystore.location")
    if not location:
        return []
    store = _read_store(values, "keystore", location)
    if store is None:
        return [("certificate_location", location), ("key_location", location)]
    if not store.keys:
        _fail_store("keystore", location, "it has no private key")
    key = store.keys[0]
    return [("certificate_pem", to_pem(key.chain)), ("key_pem", key.key_pem)]


def _read_store(values: Mapping[str, Any], store: str, location: str) -> KeyStore | None:
    """Returns the content of a binary store; OpenSSL reads PEM files by itself."""
    kind = values.get(f"ssl.{store}.type")
    if kind is not None and kind.upper() == PEM:
        return None
    if kind is not None and kind.upper() not in TYPES:
        fail(
            KafkaError._INVALID_ARG,
            f'"ssl.{store}.type" is {kind}; it must be one of {", ".join(TYPES)}',
        )
    try:
        if kind is None and detect_type(location) == PEM:
            return None
        password = values.get(f"ssl.{store}.password")
        return read_key_store(location, kind, password, values.get("ssl.key.password"))
    except KeyStoreError as error:
        _fail_store(store, location, str(error))


def _fail_store(store: str, location: str, reason: str) -> NoReturn:
    advice = f'; check "ssl.{store}.password"' if "password" in reason else ""
    fail(KafkaError._INVALID_ARG, f'"ssl.{store}.location" {location}: {reason}{advice}')


def _login(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Reads the fields of a line like `...PlainLoginModule required username="a" ...;`."""
    line = values.get("sasl.jaas.config")
    if not line:
        return []
    module, _, rest = line.strip().partition(" ")
    fields = _LOGIN_FIELDS.get(module.rpartition(".")[2])
    if fields is None:
        fail(
            KafkaError._INVALID_ARG,
            '"sasl.jaas.config" must be a line of PlainLoginModule, ScramLoginModule or '
            "Krb5LoginModule, "
            "such as 'org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="..." password="...";\'; for tokens give oauth_cb',
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted or single or bare)
        for name, quoted, single, bare in re.findall(
            r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""", rest
        )
    }
    login: list[tuple[str, Any]] = [
        (field, options[name]) for name, field in fields.items() if name in options
    ]
    if options.get("tokenauth", "").lower() == "true":
        login.append(("is_token", True))
    return login


_PASSWORD_FIELDS = {"username": "username", "password": "password"}
_LOGIN_FIELDS = {
    "PlainLoginModule": _PASSWORD_FIELDS,
    "ScramLoginModule": _PASSWORD_FIELDS,
    "Krb5LoginModule": {
        "serviceName": "kerberos_service",
        "principal": "kerberos_principal",
        "keyTab": "kerberos_keytab",
    },
}
"""The options of Java's login modules, and the fields that they set."""


def _tokens(values: Mapping[str, Any]) -> Callable[[str], Any] | None:
    """Returns the source of tokens if there is no callback."""
    if values.get("sasl.oauthbearer.method", "default").lower() == "oidc":
        return oauth_tokens.client_credentials_tokens(values)
    return (
        oauth_tokens.unsecured_token if values.get("enable.sasl.oauthbearer.unsecure.jwt") else None
    )


def _check_login(security: Security, settings: Mapping[str, Any]) -> None:
    supported = f"use one of {', '.join(MECHANISMS)}"
    if "mechanism" not in settings:
        fail(KafkaError._INVALID_ARG, f'"sasl.mechanism" is not set: {supported}')
    mechanism = security.mechanism
    if mechanism not in MECHANISMS:
        fail(KafkaError._INVALID_ARG, f'"sasl.mechanism" {mechanism} is not supported: {supported}')
    needs_password = mechanism not in ("OAUTHBEARER", "GSSAPI")
    if needs_password and (not security.username or security.password is None):
        fail(
            KafkaError._INVALID_ARG,
            f'{mechanism} needs "sasl.username" and "sasl.password", or "sasl.jaas.config"',
        )
