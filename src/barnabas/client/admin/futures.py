"""Outcomes of a call on the clients' loop, as futures for another thread.

They cannot be cancelled, as `confluent_kafka`'s cannot: the request has been sent.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

from barnabas.client.admin.calls import Results
from barnabas.client.errors import KafkaError, KafkaException

K = TypeVar("K")
V = TypeVar("V")


def one_future(call: "Future[V]") -> "Future[V]":
    """A future for the whole call."""
    future: Future[V] = _running()
    call.add_done_callback(lambda call: _settle(call, future.set_result, future.set_exception))
    return future


def future_each(keys: Iterable[K], call: "Future[Results[K, V]]") -> "dict[K, Future[V]]":
    """A future for each item of the call."""
    futures: dict[K, Future[V]] = {key: _running() for key in keys}

    def succeeded(results: Results[K, V]) -> None:
        for key, future in futures.items():
            try:
                future.set_result(results[key])
            except Exception as failure:
                future.set_exception(failure)

    def failed(failure: BaseException) -> None:
        for future in futures.values():
            future.set_exception(failure)

    call.add_done_callback(lambda call: _settle(call, succeeded, failed))
    return futures


def _settle(
    call: "Future[V]",
    succeeded: Callable[[V], None],
    failed: Callable[[BaseException], None],
) -> None:
    try:
        value = call.result()
    except (asyncio.CancelledError, concurrent.futures.CancelledError):
        failed(KafkaException(KafkaError(KafkaError._DESTROY, "the admin client was closed")))
    except Exception as failure:
        failed(failure)
    else:
        succeeded(value)


def _running() -> "Future[V]":
    future: Future[V] = Future()
    future.set_running_or_notify_cancel()
    return future
