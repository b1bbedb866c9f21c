# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The record accumulator: every record is encoded into the open batch of its partition.

Hot path: `RecordAccumulator.append` runs in the user's thread, once per record. All else runs on
the loop, once per batch. One lock serves both. The fields of the class are in `_accumulator.pxd`.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._message import Message
    from cython.cimports.barnabas.client.producer._batch import ProducerBatch
    from cython.cimports.barnabas.client.producer._queues import (
        PartitionQueue,
        StickyPartitioner,
        TopicQueues,
    )

else:
    from barnabas.client._message import Message
    from barnabas.client.producer._batch import ProducerBatch
    from barnabas.client.producer._queues import PartitionQueue, StickyPartitioner, TopicQueues

COMPILED: bool = cython.compiled

_MAX_RECORD_OVERHEAD = cython.declare(cython.Py_ssize_t, 32)
"""Upper bound of the varints before, between and after a record's key and value."""


@cython.cclass
class RecordAccumulator:
    """All records that were produced and are not sent yet, by partition; bounded."""

    def __init__(
        self,
        wake: object,
        *,
        max_records: int,
        max_bytes: int,
        max_record_bytes: int,
        batch_bytes: int,
        batch_records: int,
        linger_s: float,
        hash_key: object = None,
        sticks_null_keys: bool = True,
        sticks_empty_keys: bool = False,
        partitioner: object = None,
        sticky_ms: int = 10,
        is_adaptive: bool = True,
        seed: int = 1,
    ) -> None:
        self.lock = Lock()
        self.acquire = self.lock.acquire
        self.release = self.lock.release
        self.wake = wake
        self.topics = {}
        self.active = []
        self.buffered_records = self.buffered_bytes = self.waiting_records = 0
        self.max_records = max_records
        self.max_bytes = max_bytes
        self.max_record_bytes = max_record_bytes
        self.batch_bytes = batch_bytes
        self.batch_records = batch_records
        self.linger_s = linger_s
        self.hash_key = hash_key
        self.sticks_null_keys = sticks_null_keys
        self.sticks_empty_keys = sticks_empty_keys
        self.partitioner = partitioner
        self.sticky_partitioner = StickyPartitioner(batch_bytes, sticky_ms, is_adaptive, seed)
        self.is_woken = self.has_timer = self.is_exhausted = False
        self.flushing = 0
        self.new_topics = []

    # In the user's thread

    @cython.ccall
    def append(
        self,
        name: str,
        partition: cython.int,
        key: bytes,
        value: bytes,
        timestamp: cython.longlong,
        headers: list,
        callback: object,
        message: object,
    ) -> object:
        """Appends a record: bytes or None, and pairs of bytes for headers, or None.

        `message` is completed and passed to `callback` at delivery. Raises BufferError if the
        buffer is full, OverflowError if the record is larger than allowed, IndexError if the topic
        has no such partition.
        """
        body: cython.Py_ssize_t = 0
        if key is not None:
            body += len(key)
        if value is not None:
            body += len(value)
        if headers is not None:
            for header, content in headers:
                body += len(header) + 10 + (0 if content is None else len(content))
        if body > self.max_record_bytes:
            raise OverflowError(body)
        chosen_partition: cython.longlong = partition
        if chosen_partition < 0 and self.partitioner is not None:
            chosen_partition = self._user_partition(name, key)
        wakes: cython.bint = False
        self.acquire()
        try:
            if (
                self.buffered_records >= self.max_records
                or self.buffered_bytes + body > self.max_bytes
            ):
                self._raise_full()
            wakes = self._add(
                name, chosen_partition, key, value, timestamp, headers, body, callback, message
            )
        finally:
            self.release()
        if wakes:
            self.wake()
        return None

    def append_encoded(self, name: str, partition: int, batch: ProducerBatch) -> None:
        """Appends a batch to its partition. Raises BufferError if the buffer is full."""
        wakes: cython.bint = False
        with self.lock:
            if self.buffered_records and (
                self.buffered_records >= self.max_records
                or self.buffered_bytes + batch.buffered_bytes > self.max_bytes
            ):
                self._raise_full()
            topic: TopicQueues = self.topics[name]
            queue: PartitionQueue = topic.queues[partition]
            queue.close_for_appends()
            queue.full.append(batch)
            self.buffered_records += batch.record_count
            self.buffered_bytes += batch.buffered_bytes
            self._mark_active(queue)
            wakes = not self.is_woken
            self.is_woken = True
        if wakes:
            self.wake()

    def next_sticky_partition(self, name: str) -> int:
        """Returns a partition for a batch of records without a key."""
        with self.lock:
            topic: TopicQueues = self.topics[name]
            return topic.pick_queue().partition

    def partition_count(self, name: str) -> int:
        """Returns how many partitions a topic has; 0 if its metadata has to be fetched first."""
        wakes: cython.bint = False
        with self.lock:
            topic: TopicQueues = self._topic(name)
            if topic.queues:
                return len(topic.queues)
            wakes = not self.is_woken
            self.is_woken = True
        if wakes:
            self.wake()
        return 0

    @cython.cfunc
    def _add(
        self,
        name: str,
        partition: cython.longlong,
        key: bytes,
        value: bytes,
        timestamp: cython.longlong,
        headers: list,
        body: cython.Py_ssize_t,
        callback: object,
        message: object,
    ) -> cython.bint:
        """Adds the record to its batch. Returns whether the loop has to be woken."""
        topic: TopicQueues = self.topics.get(name)
        if topic is None:
            topic = self._topic(name)
        if partition >= len(topic.queues) > 0:
            raise IndexError(partition)
        if not topic.queues:
            topic.waiting.append((partition, key, value, timestamp, headers, callback, message))
            topic.waiting_bytes += body
            self.buffered_records += 1
            self.buffered_bytes += body
            self.waiting_records += 1
            return self._needs_wake(len(topic.waiting) == 1)
        queue: PartitionQueue
        if partition >= 0:
            queue = topic.queues[partition]
        elif self.hash_key is not None and (
            not self.sticks_null_keys if key is None else len(key) > 0 or not self.sticks_empty_keys
        ):
            hashed: cython.longlong = self.hash_key(b"" if key is None else key)
            queue = topic.queues[hashed % len(topic.queues)]
        else:
            queue = topic.next_sticky(timestamp, body)
        batch: ProducerBatch = queue.open
        is_urgent: cython.bint = False
        if batch is not None and (
            batch.size_bytes + body + _MAX_RECORD_OVERHEAD > self.batch_bytes
            or batch.record_count >= self.batch_records
        ):
            queue.close_for_appends()
            batch = None
            is_urgent = True
        if batch is None:
            batch = queue.open = ProducerBatch(
                queue.topic, queue.partition, queue.next_buffer_bytes, monotonic()
            )
            self._mark_active(queue)
            is_urgent = is_urgent or not self.has_timer
        before: cython.Py_ssize_t = batch.size_bytes
        if callback is not None:
            reported: Message = message
            reported._partition = queue.partition
            reported._offset = batch.record_count
            batch.messages.append(message)
            batch.callbacks.append(callback)
        batch.append(key, value, timestamp, headers, body)
        before = batch.size_bytes - before
        batch.buffered_bytes += before
        self.buffered_records += 1
        self.buffered_bytes += before
        return self._needs_wake(is_urgent)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _needs_wake(self, is_urgent: cython.bint) -> cython.bint:
        if is_urgent and not self.is_woken:
            self.is_woken = True
            return True
        return False

    @cython.cfunc
    def _topic(self, name: str) -> TopicQueues:
        topic: TopicQueues = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = TopicQueues(name, self.sticky_partitioner, monotonic())
            self.new_topics.append(name)
        return topic

    @cython.cfunc
    def _mark_active(self, queue: PartitionQueue) -> cython.int:
        if not queue.is_active:
            queue.is_active = True
            self.active.append(queue)
        return 0

    @cython.cfunc
    @cython.exceptval(-2)
    def _user_partition(self, name: str, key: bytes) -> cython.longlong:
        """Returns the partition that the user's partitioner chooses, or -1 for the built-in one."""
        topic: TopicQueues = self.topics.get(name)
        count: cython.longlong = 0 if topic is None else len(topic.queues)
        if count == 0:
            return -1  # called again when the partitions are known
        chosen_partition: cython.longlong = self.partitioner(name, key, count)
        if chosen_partition < -1 or chosen_partition >= count:
            raise ValueError(
                f"The partitioner chose {chosen_partition} of {count} partitions of {name}."
            )
        return chosen_partition

    @cython.cfunc
    def _raise_full(self) -> cython.int:
        """Raises BufferError. From now on batches are sent without lingering."""
        self.is_exhausted = True
        raise BufferError("Local: Queue full")

    # On the loop

    def ready(self, now_s: cython.double) -> tuple[list[PartitionQueue], object]:
        """Returns the queues with a batch to send now, and when the next one has lingered."""
        queue: PartitionQueue
        due: list = []
        active: list = []
        oldest_s: cython.double = 0
        with self.lock:
            self.is_woken = False
            at_once: cython.bint = self.flushing > 0 or self.is_exhausted
            for queue in self.active:
                if not queue.full and queue.open is None:
                    queue.is_active = False
                    continue
                active.append(queue)
                if queue.full or at_once or queue.open.created_s + self.linger_s <= now_s:
                    due.append(queue)
                elif oldest_s == 0 or queue.open.created_s < oldest_s:
                    oldest_s = queue.open.created_s
            self.active = active
            self.has_timer = oldest_s != 0
        return due, oldest_s + self.linger_s if oldest_s != 0 else None

    def is_due(self, queue: PartitionQueue, now_s: cython.double) -> bool:
        """Returns whether a queue still has a batch to send now."""
        with self.lock:
            if queue.full:
                return True
            return queue.open is not None and (
                self.flushing > 0
                or self.is_exhausted
                or queue.open.created_s + self.linger_s <= now_s
            )

    def take_batch(self, queue: PartitionQueue) -> object:
        """Takes the first batch out of a queue, closed for appends; None if there is none."""
        with self.lock:
            if not queue.full:
                queue.close_for_appends()
            if not queue.full:
                return None
            batch: ProducerBatch = queue.full.pop(0)
        batch.trim()
        return batch

    def deallocate(self, batch: ProducerBatch) -> bool:
        """Releases the memory of a batch that is done and reported.

        Returns whether a caller that found the buffer full should try again: not after every batch,
        but when a quarter of the buffer is free.
        """
        with self.lock:
            self.buffered_records -= batch.record_count
            self.buffered_bytes -= batch.buffered_bytes
            if (
                not self.is_exhausted
                or self.buffered_records > self.max_records - self.max_records // 4
                or self.buffered_bytes > self.max_bytes - self.max_bytes // 4
            ):
                return False
            self.is_exhausted = False
            return True

    def expired_batches(self, before_s: cython.double) -> list[ProducerBatch]:
        """Takes out every batch that was created before a time, open ones too."""
        queue: PartitionQueue
        batch: ProducerBatch
        old: list = []
        with self.lock:
            for queue in self.active:
                while queue.full:
                    batch = queue.full[0]
                    if batch.created_s >= before_s:
                        break
                    old.append(queue.full.pop(0))
                if queue.open is not None and queue.open.created_s < before_s:
                    queue.close_for_appends()
                    old.append(queue.full.pop())
        for batch in old:
            batch.trim()
        return old

    def take_new_topics(self) -> list[str]:
        """Returns the topics without metadata that were first used since the last call."""
        with self.lock:
            names, self.new_topics = self.new_topics, []
        return names

    def update_topic(self, name: str, count: int, available: object) -> list[ProducerBatch]:
        """Sets the partitions of a topic, and moves records that waited for it to their batches.

        Returns batches to report of the records whose partition does not exist.
        """
        unknown_partition: list = []
        with self.lock:
            topic: TopicQueues = self._topic(name)
            index: cython.Py_ssize_t
            for index in range(len(topic.queues), count):
                topic.queues.append(PartitionQueue(name, index))
            topic.available = [topic.queues[index] for index in available]
            if topic.sticky is not None and topic.sticky not in topic.available:
                topic.sticky = None
            waiting: list = topic.waiting
            self._clear_waiting(topic)
            for partition, key, value, timestamp, headers, callback, message in waiting:
                if partition >= len(topic.queues):
                    unknown_partition.append(
                        self._report_only(topic, partition, [(callback, message)])
                    )
                    continue
                if partition < 0 and self.partitioner is not None:
                    partition = self._user_partition(name, key)
                body: cython.Py_ssize_t = (0 if key is None else len(key)) + (
                    0 if value is None else len(value)
                )
                if headers is not None:
                    for header, content in headers:
                        body += len(header) + 10 + (0 if content is None else len(content))
                self._add(name, partition, key, value, timestamp, headers, body, callback, message)
        return unknown_partition

    def take_waiting(self, name: str) -> object:
        """Takes out the records that wait for a topic's metadata, as a batch to report, or None."""
        with self.lock:
            topic: TopicQueues = self.topics.get(name)
            if topic is None or not topic.waiting:
                return None
            waiting: list = topic.waiting
            self._clear_waiting(topic)
            return self._report_only(topic, -1, [(record[5], record[6]) for record in waiting])

    def waiting_since(self) -> dict[str, float]:
        """Returns the topics with records that wait for metadata, and since when they wait."""
        with self.lock:
            return {
                name: cython.cast(TopicQueues, topic).waiting_since_s
                for name, topic in self.topics.items()
                if cython.cast(TopicQueues, topic).waiting
            }

    def purge(self) -> list[ProducerBatch]:
        """Takes out all records that are not in flight."""
        taken: list = []
        queue: PartitionQueue
        batch: ProducerBatch
        topic: TopicQueues
        with self.lock:
            for queue in self.active:
                queue.close_for_appends()
                taken.extend(queue.full)
                queue.full = []
            for topic in self.topics.values():
                if topic.waiting:
                    waiting: list = topic.waiting
                    self._clear_waiting(topic)
                    taken.append(
                        self._report_only(topic, -1, [(record[5], record[6]) for record in waiting])
                    )
        for batch in taken:
            batch.trim()
        return taken

    def set_unavailable(self, queue: PartitionQueue, is_unavailable: bool) -> None:
        """Sets whether records without a key avoid the partition (KIP-794)."""
        queue.is_unavailable = is_unavailable

    def begin_flush(self) -> None:
        """Sends batches without lingering, until `end_flush` is called as often."""
        with self.lock:
            self.flushing += 1

    def end_flush(self) -> None:
        with self.lock:
            self.flushing -= 1

    @property
    def is_empty(self) -> bool:
        """Whether no record waits to be sent."""
        queue: PartitionQueue
        with self.lock:
            for queue in self.active:
                if queue.full or queue.open is not None:
                    return False
            for name in self.topics:
                topic: TopicQueues = self.topics[name]
                if topic.waiting:
                    return False
            return True

    @cython.cfunc
    def _clear_waiting(self, topic: TopicQueues) -> cython.int:
        self.buffered_records -= len(topic.waiting)
        self.waiting_records -= len(topic.waiting)
        self.buffered_bytes -= topic.waiting_bytes
        topic.waiting = []
        topic.waiting_bytes = 0
        topic.waiting_since_s = monotonic()
        return 0

    @cython.cfunc
    def _report_only(
        self, topic: TopicQueues, partition: cython.int, callbacks: list
    ) -> ProducerBatch:
        """Returns a batch that only carries the reports of records that are not sent."""
        batch: ProducerBatch = ProducerBatch(topic.name, partition, 0, topic.waiting_since_s)
        batch.size_bytes = 0
        batch.record_count = len(callbacks)
        self.buffered_records += batch.record_count
        for callback, message in callbacks:
            if callback is not None:
                batch.messages.append(message)
                batch.callbacks.append(callback)
        return batch
