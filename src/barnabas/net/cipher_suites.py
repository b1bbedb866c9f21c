"""The names of cipher suites: Java's, which are those of the TLS standards, and OpenSSL's."""

import re
import ssl
from functools import cache

TLS_1_3_SUITES = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
"""OpenSSL always enables all of these with TLS 1.3, and Python cannot restrict them."""

_STANDARD_NAME = re.compile(r"(?:TLS|SSL)_(?P<exchange>\w+)_WITH_(?P<cipher>\w+)")


def openssl_name(suite: str) -> str:
    """Returns OpenSSL's name of a suite before TLS 1.3. Raises ValueError if it has none.

    An expression of OpenSSL, such as `HIGH:!aNULL`, is returned as it is.
    """
    standard = _STANDARD_NAME.fullmatch(suite)
    if standard is None:
        if is_standard_name(suite):
            raise ValueError(f"{suite} is not the name of a cipher suite")
        return suite
    exchange = standard["exchange"].replace("_", "-")
    cipher = re.sub(r"AES_(\d+)", r"AES\1", standard["cipher"])
    cipher = re.sub(r"CAMELLIA_(\d+)", r"CAMELLIA\1", cipher)
    cipher = cipher.replace("_CBC", "").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    cipher = re.sub(r"_CCM(_8)?$", lambda ccm: "_CCM8" if ccm[1] else "_CCM", cipher)
    name = cipher.replace("_", "-") if exchange == "RSA" else f"{exchange}-{cipher}"
    name = name.replace("_", "-")
    if name not in _available():
        raise ValueError(f"this OpenSSL has no cipher suite {suite} ({name})")
    return name


def is_standard_name(suite: str) -> bool:
    return suite.startswith(("TLS_", "SSL_"))


@cache
def _available() -> frozenset[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    return frozenset(cipher["name"] for cipher in context.get_ciphers())
