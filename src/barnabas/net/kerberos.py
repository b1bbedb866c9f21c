"""The library for Kerberos, which is not installed by default."""

from types import ModuleType

SECURITY_LAYER_NONE = 1
"""Neither integrity nor encryption of requests: that is up to TLS."""


class KerberosMissing(Exception):  # noqa: N818 - what happened
    """python-gssapi is not installed, or the Kerberos libraries that it needs are not."""


def load_gssapi() -> ModuleType:
    """Returns python-gssapi. Raises KerberosMissing, which says what to install."""
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise KerberosMissing(
            "GSSAPI needs python-gssapi and the libraries of MIT Kerberos: "
            f"pip install 'barnabas[kerberos]' ({error})"
        ) from None
    module: ModuleType = gssapi
    return module
