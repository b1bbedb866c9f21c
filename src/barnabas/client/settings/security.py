"""Security settings: from librdkafka's single names, or Java's stores and JAAS lines.

Python's ssl reads PEM files. A Java store in that format is used as it is; one in another (JKS,
PKCS12) is an error that says how to convert it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import oauth_tokens
from barnabas.client.settings.model import Security
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
    "username": '"sasl.username" and "sasl.jaas.config" name different users: keep one',
    "password": '"sasl.password" and "sasl.jaas.config" have different passwords: keep one',
}


def _truststore(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    location = values.get("ssl.truststore.location")
    if not location:
        return []
    _reject_binary_store(values, "truststore", location, "-nokeys")
    return [("ca_location", location)]


def _keystore(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    location = values.get("ssl.keystore.location")
    if not location:
        return []
    _reject_binary_store(values, "keystore", location, "-nodes")
    return [("certificate_location", location), ("key_location", location)]


def _reject_binary_store(values: Mapping[str, Any], store: str, location: str, option: str) -> None:
    kind = values.get(f"ssl.{store}.type")
    if kind is not None and kind.upper() == "PEM":
        return
    reason = f'"ssl.{store}.type" is {kind}' if kind else f'without "ssl.{store}.type" it is JKS'
    to_pkcs12 = (
        f"keytool -importkeystore -srckeystore {location} -destkeystore {store}.p12 "
        f"-deststoretype PKCS12, then "
    )
    source = location if kind and kind.upper() == "PKCS12" else f"{store}.p12"
    fail(
        KafkaError._INVALID_ARG,
        f'"ssl.{store}.location" must be a PEM file, and {reason}. Convert it with '
        f"{'' if source == location else to_pkcs12}"
        f"openssl pkcs12 -in {source} -out {store}.pem {option}, "
        f'and set "ssl.{store}.type" to PEM',
    )


def _login(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Reads user and password of a line like `...PlainLoginModule required username="a" ...;`."""
    line = values.get("sasl.jaas.config")
    if not line:
        return []
    module, _, rest = line.strip().partition(" ")
    if module.rpartition(".")[2] not in ("PlainLoginModule", "ScramLoginModule"):
        fail(
            KafkaError._INVALID_ARG,
            '"sasl.jaas.config" must be a line of PlainLoginModule or ScramLoginModule, '
            "such as 'org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="..." password="...";\'; for tokens give oauth_cb',
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted or single or bare)
        for name, quoted, single, bare in re.findall(
            r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""", rest
        )
    }
    return [(name, options[name]) for name in ("username", "password") if name in options]


def _tokens(values: Mapping[str, Any]) -> Callable[[str], Any] | None:
    """Returns the source of tokens if there is no callback."""
    if values.get("sasl.oauthbearer.method", "default").lower() == "oidc":
        return oauth_tokens.client_credentials_tokens(values)
    return (
        oauth_tokens.unsecured_token if values.get("enable.sasl.oauthbearer.unsecure.jwt") else None
    )


def _check_login(security: Security, settings: Mapping[str, Any]) -> None:
    mechanism = security.mechanism if "mechanism" in settings else "GSSAPI"
    if mechanism not in MECHANISMS:
        default = "" if "mechanism" in settings else " (the default)"
        fail(
            KafkaError._INVALID_ARG,
            f'"sasl.mechanism" {mechanism}{default} is not supported: '
            f"use one of {', '.join(MECHANISMS)}",
        )
    needs_password = mechanism != "OAUTHBEARER"
    if needs_password and (not security.username or security.password is None):
        fail(
            KafkaError._INVALID_ARG,
            f'{mechanism} needs "sasl.username" and "sasl.password", or "sasl.jaas.config"',
        )
