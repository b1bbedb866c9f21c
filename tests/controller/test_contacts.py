"""Who was silent for too long, and who cannot tell."""

from barnabas.controller.contacts import Contact, Contacts

SESSION_MS = 9_000


def contacts() -> Contacts:
    heard = Contacts(SESSION_MS)
    heard.touch(Contact(1, 5, 0, metadata_offset=7))
    heard.touch(Contact(2, 6, 1_000, metadata_offset=7))
    return heard


def test_the_session_of_a_silent_broker_ends_once() -> None:
    heard = contacts()
    ended = {now_ms: list(heard.expired(now_ms)) for now_ms in range(0, 12_000, 500)}
    assert {now_ms: ids for now_ms, ids in ended.items() if ids} == {9_000: [1], 10_000: [2]}


def test_who_stood_still_itself_does_not_take_the_others_for_silent() -> None:
    heard = contacts()
    assert not list(heard.expired(2_000))
    assert not list(heard.expired(30_000))
    assert not list(heard.expired(34_000))
    assert not list(heard.expired(38_000))
    assert list(heard.expired(39_000)) == [1, 2]
