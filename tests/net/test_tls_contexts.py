"""Protocol versions and cipher suites of contexts."""

import ssl

import pytest

from barnabas.net.cipher_suites import openssl_name
from barnabas.net.tls import TlsSettings


@pytest.mark.parametrize(
    ("standard", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("SSL_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("HIGH", "HIGH"),
    ],
)
def test_javas_names_of_suites_become_openssls(standard: str, openssl: str) -> None:
    assert openssl_name(standard) == openssl


@pytest.mark.parametrize("name", ["TLS_CASTLE", "TLS_RSA_WITH_CASTLE_128_SHA", "SSL_NO_SUITE"])
def test_an_unknown_suite_is_an_error_with_its_name(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        TlsSettings(cipher_suites=(name,)).client_context()


def versions(context: ssl.SSLContext) -> set[str]:
    return {
        name
        for name, option in (("1.2", ssl.OP_NO_TLSv1_2), ("1.3", ssl.OP_NO_TLSv1_3))
        if not context.options & option
        and context.minimum_version <= ssl.TLSVersion[f"TLSv{name.replace('.', '_')}"]
        and context.maximum_version
        in (ssl.TLSVersion.MAXIMUM_SUPPORTED, *_from(f"TLSv{name.replace('.', '_')}"))
    }


def _from(name: str) -> list[ssl.TLSVersion]:
    return [version for version in ssl.TLSVersion if version >= ssl.TLSVersion[name]]


TLS_1_2_SUITE = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
TLS_1_3_SUITE = "TLS_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("enabled", "suites", "expected"),
    [
        (("TLSv1.2", "TLSv1.3"), (), {"1.2", "1.3"}),
        (("TLSv1.3",), (), {"1.3"}),
        (("TLSv1.2",), (), {"1.2"}),
        (("TLSv1.2", "TLSv1.3"), (TLS_1_2_SUITE,), {"1.2"}),
        (("TLSv1.2", "TLSv1.3"), (TLS_1_3_SUITE,), {"1.3"}),
        (("TLSv1.2", "TLSv1.3"), (TLS_1_3_SUITE, TLS_1_2_SUITE), {"1.2", "1.3"}),
        (("TLSv1.2", "TLSv1.3"), ("HIGH",), {"1.2", "1.3"}),
    ],
)
def test_the_versions_are_those_that_are_enabled_and_have_a_suite(
    enabled: tuple[str, ...], suites: tuple[str, ...], expected: set[str]
) -> None:
    settings = TlsSettings(versions=enabled, cipher_suites=suites)
    assert versions(settings.client_context()) == expected


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (TlsSettings(versions=("SSLv3",)), "SSLv3 is not one of TLSv1, TLSv1.1, TLSv1.2"),
        (
            TlsSettings(versions=("TLSv1.2",), cipher_suites=(TLS_1_3_SUITE,)),
            "no cipher suites of the enabled protocols",
        ),
        (TlsSettings(cipher_suites=("CASTLE",)), "none of CASTLE is a cipher suite"),
    ],
)
def test_versions_and_suites_that_cannot_be_used_are_errors(
    settings: TlsSettings, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        settings.client_context()


def test_a_server_refuses_renegotiation() -> None:
    assert TlsSettings().server_context().options & ssl.OP_NO_RENEGOTIATION
