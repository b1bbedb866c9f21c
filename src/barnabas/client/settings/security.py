"""How connections are secured: out of librdkafka's single names, or Java's stores and JAAS lines.

Python's ssl reads PEM files. A store of Java's in that format is taken as it is; one in another
(JKS, PKCS12) is an error that says how to convert it.
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
    given: Mapping[str, Any], fields: Mapping[str, Any], told: Mapping[str, Any]
) -> Security:
    """`fields` are those that names told one by one; `given` has Java's stores as well.

    What a protocol does not use is not looked at, as in Java: files are often shared.
    """
    own = dict(fields)
    protocol = own.get("protocol", Security().protocol)
    stores = (*_truststore(given), *_keystore(given)) if protocol.endswith("SSL") else ()
    login = _login(given) if protocol.startswith("SASL_") else ()
    for field, value in (*stores, *login):
        if own.setdefault(field, value) != value:
            fail(KafkaError._INVALID_ARG, _TOLD_TWICE[field])
    own["oauth_cb"] = told.get("oauth_cb") or _tokens(given)
    secured = Security(**own)
    if secured.protocol.startswith("SASL_"):
        _check_login(secured, own)
    return secured


_TOLD_TWICE = {
    "ca_location": '"ssl.ca.location" and "ssl.truststore.location" name different files: keep one',
    "certificate_location": (
        '"ssl.certificate.location" and "ssl.keystore.location" name different files: keep one'
    ),
    "key_location": '"ssl.key.location" and "ssl.keystore.location" name different files: keep one',
    "username": '"sasl.username" and "sasl.jaas.config" name different users: keep one',
    "password": '"sasl.password" and "sasl.jaas.config" have different passwords: keep one',
}


def _truststore(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    location = given.get("ssl.truststore.location")
    if not location:
        return []
    _refuse_binary_store(given, "truststore", location, "-nokeys")
    return [("ca_location", location)]


def _keystore(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    location = given.get("ssl.keystore.location")
    if not location:
        return []
    _refuse_binary_store(given, "keystore", location, "-nodes")
    return [("certificate_location", location), ("key_location", location)]


def _refuse_binary_store(given: Mapping[str, Any], store: str, location: str, option: str) -> None:
    kind = given.get(f"ssl.{store}.type")
    if kind is not None and kind.upper() == "PEM":
        return
    told = f'"ssl.{store}.type" is {kind}' if kind else f'without "ssl.{store}.type" it is JKS'
    to_pkcs12 = (
        f"keytool -importkeystore -srckeystore {location} -destkeystore {store}.p12 "
        f"-deststoretype PKCS12, then "
    )
    source = location if kind and kind.upper() == "PKCS12" else f"{store}.p12"
    fail(
        KafkaError._INVALID_ARG,
        f'"ssl.{store}.location" must be a PEM file, and {told}. Convert it with '
        f"{'' if source == location else to_pkcs12}"
        f"openssl pkcs12 -in {source} -out {store}.pem {option}, "
        f'and set "ssl.{store}.type" to PEM',
    )


def _login(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """User and password of a line such as `...PlainLoginModule required username="a" ...;`."""
    line = given.get("sasl.jaas.config")
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


def _tokens(given: Mapping[str, Any]) -> Callable[[str], Any] | None:
    """Where tokens come from that no callback gives."""
    if given.get("sasl.oauthbearer.method", "default").lower() == "oidc":
        return oauth_tokens.client_credentials_tokens(given)
    return (
        oauth_tokens.unsecured_token if given.get("enable.sasl.oauthbearer.unsecure.jwt") else None
    )


def _check_login(secured: Security, told: Mapping[str, Any]) -> None:
    mechanism = secured.mechanism if "mechanism" in told else "GSSAPI"
    if mechanism not in MECHANISMS:
        default = "" if "mechanism" in told else " (meant where none is named)"
        fail(
            KafkaError._INVALID_ARG,
            f'"sasl.mechanism" {mechanism}{default} is not supported: '
            f"use one of {', '.join(MECHANISMS)}",
        )
    needs_password = mechanism != "OAUTHBEARER"
    if needs_password and (not secured.username or secured.password is None):
        fail(
            KafkaError._INVALID_ARG,
            f'{mechanism} needs "sasl.username" and "sasl.password", or "sasl.jaas.config"',
        )
