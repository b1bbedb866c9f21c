"""Subjects as Java's X500Principal.getName() returns them: the expected texts are Java's."""

import pytest
from cryptography import x509
from cryptography.x509 import NameAttribute as Attribute
from cryptography.x509 import RelativeDistinguishedName as Part
from cryptography.x509.oid import NameOID

from barnabas.net.distinguished_names import format_name

LONG = "T" * 130


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        (
            [
                (NameOID.COMMON_NAME, "*.example.org"),
                (NameOID.STATE_OR_PROVINCE_NAME, "st"),
                (NameOID.LOCALITY_NAME, "l"),
                (NameOID.ORGANIZATIONAL_UNIT_NAME, "ou"),
            ],
            "OU=ou,L=l,ST=st,CN=*.example.org",
        ),
        (
            [
                (NameOID.COUNTRY_NAME, "CZ"),
                (NameOID.ORGANIZATION_NAME, 'Castle, Inc. "x" <y>;z+w=#q\\'),
                (NameOID.COMMON_NAME, " #lead trail "),
            ],
            'CN=\\ \\#lead trail\\ ,O=Castle\\, Inc. \\"x\\" \\<y\\>\\;z\\+w\\=\\#q\\\\,C=CZ',
        ),
        (
            [(NameOID.EMAIL_ADDRESS, "a@b.c"), (NameOID.COMMON_NAME, "žluťoučký")],
            "CN=žluťoučký,1.2.840.113549.1.9.1=#16056140622e63",
        ),
        (
            [(NameOID.DOMAIN_COMPONENT, "dc"), (NameOID.STREET_ADDRESS, "s t")],
            "STREET=s t,DC=dc",
        ),
        ([(NameOID.SERIAL_NUMBER, "12")], "2.5.4.5=#13023132"),
        ([(NameOID.TITLE, LONG)], f"2.5.4.12=#0c8182{LONG.encode().hex()}"),
        ([(NameOID.COMMON_NAME, "  ")], "CN=\\ \\ "),
    ],
)
def test_a_name_is_written_as_java_writes_it(
    attributes: list[tuple[x509.ObjectIdentifier, str]], text: str
) -> None:
    name = x509.Name([Attribute(kind, value) for kind, value in attributes])
    assert format_name(name) == text


def test_several_attributes_of_one_part_are_joined() -> None:
    part = Part([Attribute(NameOID.COMMON_NAME, "a"), Attribute(NameOID.USER_ID, "u")])
    name = x509.Name([Part([Attribute(NameOID.ORGANIZATION_NAME, "Castle")]), part])
    assert format_name(name) == "CN=a+UID=u,O=Castle"
