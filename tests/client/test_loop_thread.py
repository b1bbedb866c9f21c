"""Plain clients share one thread, whose loop runs what they ask for."""

import asyncio
import os
import signal
import threading
import time

import pytest

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.loop_thread import LoopThread

pytestmark = pytest.mark.usefixtures("without_other_clients")


async def name_of_thread() -> str:
    return threading.current_thread().name


async def for_ever() -> None:
    await asyncio.Event().wait()


def test_all_users_share_one_thread_which_ends_with_the_last() -> None:
    first, second = LoopThread.shared(), LoopThread.shared()
    assert first is second
    first.release()
    assert second.run(name_of_thread()) == "barnabas-clients"
    second.release()
    assert second.loop.is_closed()
    third = LoopThread.shared()
    assert third is not first
    third.release()


def test_an_exception_of_a_coroutine_is_raised_to_the_caller() -> None:
    async def fail() -> None:
        raise ValueError("no")

    thread = LoopThread.shared()
    with pytest.raises(ValueError, match="no"):
        thread.run(fail())
    thread.release()


def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    ended = threading.Event()

    async def wait() -> None:
        try:
            await for_ever()
        finally:
            ended.set()

    thread = LoopThread.shared()
    with pytest.raises(KafkaException) as caught:
        thread.run(wait(), timeout_s=0.01)
    assert caught.value.args[0].code() == KafkaError._TIMED_OUT
    assert ended.wait(30)
    thread.release()


def test_a_timeout_that_the_coroutine_raises_is_passed_on() -> None:
    async def fail() -> None:
        raise TimeoutError("its own")

    thread = LoopThread.shared()
    with pytest.raises(TimeoutError, match="its own"):
        thread.run(fail(), timeout_s=30)
    thread.release()


def test_a_signal_interrupts_a_call_that_waits() -> None:
    thread = LoopThread.shared()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    async def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        await for_ever()

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.run(interrupted())
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.release()


def test_functions_are_called_on_the_loop() -> None:
    thread = LoopThread.shared()
    called = threading.Event()
    thread.call(called.set)
    assert called.wait(30)
    assert thread.submit(name_of_thread()).result(30) == "barnabas-clients"
    thread.release()


def test_a_blocking_call_from_the_loop_itself_is_an_error() -> None:
    thread = LoopThread.shared()

    async def misled() -> None:
        thread.run(for_ever())

    with pytest.raises(KafkaException, match="loop"):
        thread.run(misled())
    thread.release()


def test_running_tasks_are_cancelled_when_the_last_user_releases() -> None:
    thread = LoopThread.shared()
    left = thread.submit(for_ever())
    thread.release()
    assert left.cancelled()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_thread_of_its_own() -> None:
    thread = LoopThread.shared()
    child = os.fork()
    if not child:
        try:
            own = LoopThread.shared()
            is_new = own is not thread and own.run(name_of_thread(), 30) == "barnabas-clients"
            os._exit(0 if is_new else 1)
        finally:
            os._exit(2)
    deadline_s = time.monotonic() + 60
    status = (0, 0)
    while status == (0, 0) and time.monotonic() < deadline_s:
        status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.005)
    assert status == (child, 0)
    thread.release()
