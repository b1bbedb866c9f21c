"""What operators and checks need to know of a certificate."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from barnabas.net.distinguished_names import format_name

WARNING_DAYS = 30
"""A certificate that expires sooner is worth a warning at every start and reload."""


@dataclass(slots=True, frozen=True)
class CertificateInfo:
    """Subject, alternative names and validity of a certificate."""

    subject: str
    alternative_names: frozenset[str]
    valid_from: datetime
    valid_until: datetime

    @classmethod
    def of(cls, der: bytes) -> "CertificateInfo":
        """Raises ValueError if it is no certificate."""
        certificate = x509.load_der_x509_certificate(der)
        return cls(
            format_name(certificate.subject),
            _alternative_names(certificate),
            certificate.not_valid_before_utc,
            certificate.not_valid_after_utc,
        )

    def find_warning(self, now: datetime) -> str | None:
        """Returns what an operator should know about its validity, if anything."""
        left = self.valid_until - now
        until = f"{self.valid_until:%Y-%m-%d %H:%M} UTC"
        if left < timedelta(0):
            return f"the certificate of {self.subject} expired on {until}: clients will reject it"
        if self.valid_from > now:
            begin = f"{self.valid_from:%Y-%m-%d %H:%M} UTC"
            return f"the certificate of {self.subject} is valid only from {begin} on"
        if left < timedelta(days=WARNING_DAYS):
            return f"the certificate of {self.subject} expires in {left.days} days, on {until}"
        return None


def subject_of(der: bytes) -> str:
    """Returns the subject of a certificate as Java writes it."""
    return format_name(x509.load_der_x509_certificate(der).subject)


def _alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(name.value) for name in extension.value)
