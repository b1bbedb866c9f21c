"""Settings of TLS and SASL for all clients."""

from barnabas.config import sasl
from barnabas.config.checks import ListOf, OneOf, between
from barnabas.config.setting import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    SHORT,
    STRING,
    Setting,
    declare,
)

SETTINGS = sasl.SETTINGS | declare(
    Setting("sasl.jaas.config", PASSWORD, None, MEDIUM),
    Setting("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", LOW),
    Setting("sasl.kerberos.min.time.before.relogin", LONG, 60_000, LOW),
    Setting("sasl.kerberos.service.name", STRING, None, MEDIUM),
    Setting("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, LOW),
    Setting("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, LOW),
    Setting("sasl.login.refresh.buffer.seconds", SHORT, 300, LOW, between(0, 3_600)),
    Setting("sasl.login.refresh.min.period.seconds", SHORT, 60, LOW, between(0, 900)),
    Setting("sasl.login.refresh.window.factor", DOUBLE, 0.8, LOW, between(0.5, 1.0)),
    Setting("sasl.login.refresh.window.jitter", DOUBLE, 0.05, LOW, between(0.0, 0.25)),
    Setting("sasl.mechanism", STRING, "GSSAPI", MEDIUM),
    Setting("sasl.oauthbearer.header.urlencode", BOOLEAN, False, LOW),
    Setting(
        "security.protocol",
        STRING,
        "PLAINTEXT",
        MEDIUM,
        OneOf("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", ignore_case=True),
    ),
    Setting("ssl.cipher.suites", LIST, (), LOW, ListOf(may_be_empty=True)),
    Setting(
        "ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), MEDIUM, ListOf(may_be_empty=True)
    ),
    Setting("ssl.endpoint.identification.algorithm", STRING, "https", LOW),
    Setting("ssl.engine.factory.class", CLASS, None, LOW),
    Setting("ssl.key.password", PASSWORD, None, HIGH),
    Setting("ssl.keymanager.algorithm", STRING, "SunX509", LOW),
    Setting("ssl.keystore.certificate.chain", PASSWORD, None, HIGH),
    Setting("ssl.keystore.key", PASSWORD, None, HIGH),
    Setting("ssl.keystore.location", STRING, None, HIGH),
    Setting("ssl.keystore.password", PASSWORD, None, HIGH),
    Setting("ssl.keystore.type", STRING, "JKS", MEDIUM),
    Setting("ssl.protocol", STRING, "TLSv1.3", MEDIUM),
    Setting("ssl.provider", STRING, None, MEDIUM),
    Setting("ssl.secure.random.implementation", STRING, None, LOW),
    Setting("ssl.trustmanager.algorithm", STRING, "PKIX", LOW),
    Setting("ssl.truststore.certificates", PASSWORD, None, HIGH),
    Setting("ssl.truststore.location", STRING, None, HIGH),
    Setting("ssl.truststore.password", PASSWORD, None, HIGH),
    Setting("ssl.truststore.type", STRING, "JKS", MEDIUM),
)
