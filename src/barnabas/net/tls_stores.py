"""The key store and the trust store of a listener, read as its settings say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.net.certificates import CertificateInfo
from barnabas.net.key_stores import (
    JKS,
    PEM,
    PKCS12,
    TYPES,
    KeyEntry,
    KeyStore,
    KeyStoreError,
    read_key_store,
    read_pem,
    to_pem,
)
from barnabas.net.listener_config import ListenerConfig, TlsConfigError
from barnabas.net.tls import TlsSettings

RELOADABLE = (
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
"""The settings of stores, which may change at run time."""


@dataclass(slots=True, frozen=True)
class ListenerStores:
    """What a listener presents, and whom it trusts. `trusted` is None without a trust store."""

    key: KeyEntry | None
    key_store_certificates: tuple[bytes, ...]  # the first of each entry, in DER
    trusted: tuple[bytes, ...] | None
    fingerprint: tuple[object, ...] = field(repr=False)
    """Equal for equal settings and unchanged files. It contains passwords."""


def load_stores(config: ListenerConfig) -> ListenerStores:
    """Raises TlsConfigError."""
    fingerprint = fingerprint_of(config)
    keys = _load(config, "keystore", _inline_key)
    trusted = _load(config, "truststore", _inline_certificates)
    if keys is not None and not keys.keys:
        raise TlsConfigError(
            f"{_source(config, 'keystore')} has no private key: it needs the key of this node and "
            "its certificate chain"
        )
    if keys is not None and not keys.keys[0].chain:
        raise TlsConfigError(
            f"{_source(config, 'keystore')} has a private key and no certificate: add the "
            "certificate chain of this node"
        )
    own = tuple(_first_certificates(keys))
    _require_readable(config, own)
    return ListenerStores(
        keys.keys[0] if keys is not None else None,
        own,
        _certificates_of(config, trusted),
        fingerprint,
    )


def fingerprint_of(config: ListenerConfig) -> tuple[object, ...]:
    """Returns what changes when the stores have to be read again."""
    values = tuple(config[name] for name in RELOADABLE)
    return *values, *_file_times(config)


def tls_settings(config: ListenerConfig, stores: ListenerStores) -> TlsSettings:
    """Returns the settings of TLS of a listener and its stores."""
    return TlsSettings(
        ca_pem=None if stores.trusted is None else to_pem(stores.trusted),
        certificate_pem=None if stores.key is None else to_pem(stores.key.chain),
        key_pem=None if stores.key is None else stores.key.key_pem,
        verify_host=(config["ssl.endpoint.identification.algorithm"] or "").lower() == "https",
        cipher_suites=config["ssl.cipher.suites"],
        versions=config["ssl.enabled.protocols"],
    )


def _file_times(config: ListenerConfig) -> Iterator[object]:
    for store in ("keystore", "truststore"):
        path = config[f"ssl.{store}.location"]
        try:
            status = Path(path).stat() if path else None
        except (OSError, ValueError):
            status = None
        yield status and (status.st_mtime_ns, status.st_size, status.st_ino)


def _first_certificates(store: KeyStore | None) -> Iterator[bytes]:
    if store is not None:
        for entry in store.keys:
            yield from entry.chain[:1]
        yield from store.certificates


def _require_readable(config: ListenerConfig, certificates: tuple[bytes, ...]) -> None:
    try:
        for certificate in certificates:
            CertificateInfo.of(certificate)
    except ValueError:
        raise TlsConfigError(
            f"{_source(config, 'keystore')} has a certificate that is damaged: write it again"
        ) from None


def _certificates_of(config: ListenerConfig, store: KeyStore | None) -> tuple[bytes, ...] | None:
    if store is None:
        return None
    # Java also trusts the certificates of the key entries in a trust store.
    certificates = tuple(_first_certificates(store))
    if not certificates:
        raise TlsConfigError(
            f"{_source(config, 'truststore')} has no certificate: add that of the authority to "
            "trust"
        )
    return certificates


def _load(
    config: ListenerConfig,
    store: str,
    read_inline: Callable[[ListenerConfig], str | None],
) -> KeyStore | None:
    kind = _type_of(config, store)
    location = config[f"ssl.{store}.location"]
    inline = read_inline(config)
    try:
        if inline is not None:
            _require_pem(config, store, kind)
            return read_pem(inline, config["ssl.key.password"])
        if not location:
            return None
        password = config[f"ssl.{store}.password"]
        if kind == PEM and password is not None:
            raise TlsConfigError(
                f"{config.full_name(f'ssl.{store}.password')} does not apply to PEM files: use "
                "ssl.key.password for an encrypted key"
            )
        key_password = config["ssl.key.password"] if store == "keystore" else None
        return read_key_store(location, kind, password, key_password)
    except KeyStoreError as error:
        raise TlsConfigError(
            f"{_source(config, store)}: {error}{_advice(config, store, error)}"
        ) from None


def _type_of(config: ListenerConfig, store: str) -> str:
    name = f"ssl.{store}.type"
    kind = str(config[name] or JKS).upper()
    if kind not in TYPES:
        raise TlsConfigError(
            f"{config.full_name(name)} is {config[name]}; it must be one of {', '.join(TYPES)}"
        )
    return kind


def _require_pem(config: ListenerConfig, store: str, kind: str) -> None:
    if kind != PEM:
        raise TlsConfigError(
            f"{config.full_name(f'ssl.{store}.type')} is {kind}, and only PEM can be given inline: "
            "set it to PEM"
        )
    for name in (f"ssl.{store}.location", f"ssl.{store}.password"):
        if config[name]:
            raise TlsConfigError(
                f"{config.full_name(name)} cannot be set together with an inline {store}: "
                "remove one of them"
            )


def _inline_key(config: ListenerConfig) -> str | None:
    key, chain = config["ssl.keystore.key"], config["ssl.keystore.certificate.chain"]
    if not key and not chain:
        return None
    if not key or not chain:
        missing = "ssl.keystore.certificate.chain" if key else "ssl.keystore.key"
        raise TlsConfigError(
            f"{missing} of listener {config.listener} is not set: an inline key needs its chain "
            "and the other way round"
        )
    return f"{key}\n{chain}"


def _inline_certificates(config: ListenerConfig) -> str | None:
    certificates: str | None = config["ssl.truststore.certificates"]
    return certificates or None


def _source(config: ListenerConfig, store: str) -> str:
    """Returns the setting, with the file that it names."""
    location = config[f"ssl.{store}.location"]
    if location:
        return f"{config.full_name(f'ssl.{store}.location')} {location}"
    inline = "ssl.keystore.key" if store == "keystore" else "ssl.truststore.certificates"
    return config.full_name(inline)


def _advice(config: ListenerConfig, store: str, error: KeyStoreError) -> str:
    text = str(error)
    if "password" in text and "ssl.key.password" not in text:
        kind = config.full_name(f"ssl.{store}.password")
        return f"; check {kind}" + (" and ssl.key.password" if store == "keystore" else "")
    if "its type is set" in text:
        actual = next(kind for kind in (PEM, PKCS12, JKS) if f"it is a {kind} file" in text)
        return f"; set {config.full_name(f'ssl.{store}.type')} to {actual}"
    return ""
