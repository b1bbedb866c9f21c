"""The client's cache: bounded in size and time."""

from barnabas.schema_registry.client.cache import SubjectCache


def test_the_least_recently_used_entry_is_removed_first() -> None:
    cache: SubjectCache[int] = SubjectCache(capacity=2)
    cache.put(1, "a")
    cache.put(2, "b")
    assert cache.get("a") == 1
    cache.put(3, "c")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert len(cache) == 2


def test_an_entry_expires_after_its_ttl() -> None:
    now = 0.0
    cache: SubjectCache[int] = SubjectCache(capacity=2, ttl_s=10, clock=lambda: now)
    cache.put(1, "a")
    now = 9.9
    assert cache.get("a") == 1
    now = 10.0
    assert cache.get("a") is None


def test_all_entries_of_a_subject_are_removed() -> None:
    cache: SubjectCache[int] = SubjectCache(capacity=9)
    cache.put(1, "a", 1)
    cache.put(2, "a", 2)
    cache.put(3, "b", 1)
    cache.remove_subject("a")
    assert (cache.get("a", 1), cache.get("a", 2), cache.get("b", 1)) == (None, None, 3)
