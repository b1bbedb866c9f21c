"""Builds the options of connections, with TLS and SASL, from the settings of a client."""

import asyncio

from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import ConnectionSettings, Security
from barnabas.net.connection_options import ConnectionOptions, response_buffers
from barnabas.net.gssapi_login import KerberosLogin
from barnabas.net.sasl import SaslClient
from barnabas.net.tls import TlsContext, TlsSettings


def build_connection_options(settings: ConnectionSettings) -> ConnectionOptions:
    """Raises KafkaException if a certificate cannot be read."""
    security = settings.security
    return ConnectionOptions(
        loop=asyncio.get_running_loop(),
        buffers=response_buffers(settings.max_response_bytes),
        max_response_bytes=settings.max_response_bytes,
        connect_timeout_ms=settings.connect_timeout_ms,
        max_idle_ms=settings.connections_max_idle_ms,
        send_buffer_bytes=settings.send_buffer_bytes,
        receive_buffer_bytes=settings.receive_buffer_bytes,
        tls=_tls(security) if security.protocol in ("SSL", "SASL_SSL") else None,
        sasl=_sasl(security) if security.protocol.startswith("SASL_") else None,
    )


def _tls(security: Security) -> TlsContext:
    tls_settings = TlsSettings(
        ca_file=security.ca_location,
        ca_pem=security.ca_pem,
        certificate_file=security.certificate_location,
        certificate_pem=security.certificate_pem,
        key_file=security.key_location,
        key_pem=security.key_pem,
        key_password=security.key_password,
        verify_certificates=security.verify_certificates,
        verify_host=security.verify_host,
        cipher_suites=tuple(filter(None, (security.cipher_suites or "").split(":"))),
        versions=security.tls_versions,
        revocation_list_file=security.crl_location,
    )
    try:
        return TlsContext(tls_settings.client_context())
    except (OSError, ValueError) as error:
        fail(KafkaError._SSL, f"the certificates and keys of ssl.* cannot be used: {error}")


def _sasl(security: Security) -> SaslClient:
    fetch = security.oauth_cb
    return SaslClient(
        security.mechanism,
        security.username or "",
        security.password or "",
        None if fetch is None else lambda: fetch(security.oauthbearer_config),
        is_token=security.is_token,
        kerberos=KerberosLogin(
            security.kerberos_service, security.kerberos_principal, security.kerberos_keytab
        )
        if security.mechanism == "GSSAPI"
        else None,
    )
