"""The cache creates a missing value once, and evicts the least recently used one."""

from barnabas.client.lru_cache import LruCache


def test_a_value_is_created_once() -> None:
    cache: LruCache[str, object] = LruCache(2)
    assert cache.get_or_create("a", object) is cache.get_or_create("a", object)


def test_the_least_recently_used_value_is_evicted() -> None:
    evicted: list[str] = []
    cache: LruCache[str, str] = LruCache(2, on_evict=evicted.append)
    for key in ("a", "b", "a", "c"):
        cache.get_or_create(key, lambda key=key: f"value of {key}")
    assert evicted == ["value of b"]
    assert cache.get_or_create("a", lambda: "another") == "value of a"


def test_a_value_that_is_not_valid_any_more_is_created_again() -> None:
    invalid = {"first"}
    cache: LruCache[str, str] = LruCache(2, is_valid=lambda value: value not in invalid)
    assert cache.get_or_create("a", lambda: "first") == "first"
    assert cache.get("a") is None
    assert cache.get_or_create("a", lambda: "second") == "second"


def test_none_is_cached_like_any_value() -> None:
    cache: LruCache[str, None] = LruCache(2)
    created: list[str] = []
    for _ in range(2):
        cache.get_or_create("a", lambda: created.append("a"))
    assert created == ["a"]


def test_entries_are_removed_by_their_key() -> None:
    cache: LruCache[str, int] = LruCache(3)
    for number, key in enumerate(("a", "b", "ab")):
        cache.put(key, number)
    cache.remove_if(lambda key: key.startswith("a"))
    assert (len(cache), cache.get("b"), cache.get("ab")) == (1, 1, None)
