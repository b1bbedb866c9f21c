"""Builds the validator of OAUTHBEARER tokens of a listener from its settings."""

import logging
from collections.abc import Callable
from typing import Any

from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.jaas import JaasEntry
from barnabas.security.authentication.jwks import JWKS_URL, Documents, JwksKeys
from barnabas.security.authentication.oauthbearer import TokenValidator
from barnabas.security.authentication.secured_jwt import SignedTokenValidator, TokenRules
from barnabas.security.authentication.unsecured_jwt import UnsecuredTokenValidator

log = logging.getLogger(__name__)

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
VALIDATOR_CLASSES = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
"""Kafka's classes for signed tokens, which are served by `SignedTokenValidator`."""


class TokenValidators:
    """Signed tokens if there is a JWKS, else unsecured ones. `get` returns a setting."""

    def __init__(
        self,
        listener: str,
        get: Callable[[str], Any],
        entry: JaasEntry | None,
        documents: Documents,
    ) -> None:
        """`documents` are those that were fetched already."""
        self._documents = documents
        self._listener = listener
        self._get = get
        self._entry = entry
        self._keys: JwksKeys | None = None

    def build(self) -> TokenValidator:
        """Raises SaslConfigError. A JWKS is fetched, and refreshed from then on."""
        url = self._get(JWKS_URL)
        if url is not None:
            return self._signed(url)
        if self._get("sasl.server.callback.handler.class") in VALIDATOR_CLASSES:
            raise self._error("set sasl.oauthbearer.jwks.endpoint.url")
        return self._unsecured()

    def close(self) -> None:
        if self._keys is not None:
            self._keys.close()

    def _unsecured(self) -> TokenValidator:
        log.warning(
            "Listener %s accepts OAUTHBEARER tokens without a signature, which anybody can make; "
            "set sasl.oauthbearer.jwks.endpoint.url, except for development",
            self._listener,
        )
        try:
            return UnsecuredTokenValidator(self._entry.options if self._entry is not None else {})
        except ValueError as error:
            raise self._error(f"its JAAS entry has an invalid option: {error}") from None

    def _signed(self, url: str) -> TokenValidator:
        get = self._get
        audiences = get("sasl.oauthbearer.expected.audience")
        issuer = get("sasl.oauthbearer.expected.issuer")
        if not audiences and not get("sasl.oauthbearer.allow.unverified.audience"):
            raise self._error("set sasl.oauthbearer.expected.audience")
        if not issuer and not get("sasl.oauthbearer.allow.unverified.issuer"):
            raise self._error("set sasl.oauthbearer.expected.issuer")
        self._keys = JwksKeys(
            url,
            refresh_ms=get("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            retry_ms=get("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
            retry_max_ms=get("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        )
        try:
            document = self._documents.get(url)
            if isinstance(document, Exception):
                raise document
            self._keys.load(document)
        except (OSError, ValueError) as error:
            raise self._error(
                f"sasl.oauthbearer.jwks.endpoint.url {url} cannot be read: {error}"
            ) from None
        self._keys.start()
        rules = TokenRules(
            audiences=audiences,
            issuer=issuer,
            principal_claim=get("sasl.oauthbearer.sub.claim.name"),
            scope_claim=get("sasl.oauthbearer.scope.claim.name"),
            skew_s=get("sasl.oauthbearer.clock.skew.seconds"),
        )
        return SignedTokenValidator(self._keys, rules)

    def _error(self, problem: str) -> SaslConfigError:
        return SaslConfigError(f"Listener {self._listener} has OAUTHBEARER: {problem}.")
