"""sasl.kerberos.principal.to.local.rules."""

import pytest

from barnabas.security.authentication.kerberos_names import LocalNameRules, NoLocalName


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        (["DEFAULT"], "alice@CASTLE", "alice"),
        (["DEFAULT"], "kafka/host@CASTLE", "kafka"),
        (["DEFAULT"], "alice", "alice"),
        (["RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"], "bob@OTHER", "bob"),
        (["RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"], "bob@CASTLE", "bob"),
        (["RULE:[2:$2-$1]"], "kafka/host@CASTLE", "host-kafka"),
        (["RULE:[1:$1]s/a/b/"], "aXa", "bXa"),
        (["RULE:[1:$1]s/a/b/g"], "aXa", "bXb"),
        (["RULE:[1:$1]/L"], "ALICE@ANY", "alice"),
        (["RULE:[1:$1]s/a/b/g/U"], "aXa", "BXB"),
        (["RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g"], "App.service@CASTLE", "service"),
        (["RULE:[2:$1](x.*)", "RULE:[2:$1](k.*)s/kafka/node/"], "kafka/h@CASTLE", "node"),
    ],
)
def test_the_first_rule_that_applies_names_the_user(
    rules: list[str], principal: str, user: str
) -> None:
    assert LocalNameRules(rules, "CASTLE").local_name(principal) == user


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (["DEFAULT"], "alice@OTHER"),
        ([], "alice@CASTLE"),
        (["RULE:[1:$1@$0]"], "alice@CASTLE"),
        (["RULE:[2:$1/$2]"], "kafka/host@CASTLE"),
        (["RULE:[1:$1](b.*)"], "alice@CASTLE"),
        (["RULE:[1:$1]s/.*//"], "alice@CASTLE"),
        (["DEFAULT"], "a/b/c@CASTLE"),
        (["DEFAULT"], "@CASTLE"),
    ],
)
def test_other_principals_have_no_user(rules: list[str], principal: str) -> None:
    with pytest.raises(NoLocalName):
        LocalNameRules(rules, "CASTLE").local_name(principal)


@pytest.mark.parametrize(
    "rule", ["default", "RULE:", "RULE:[x:$1]", "RULE:[1:$1](()", "RULE:[1:$1]x"]
)
def test_a_malformed_rule_is_an_error(rule: str) -> None:
    with pytest.raises(ValueError, match=r"neither|invalid"):
        LocalNameRules([rule], "CASTLE")
