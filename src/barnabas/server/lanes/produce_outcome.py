"""The rest of a Produce request whose appends failed in part, or wait for other replicas."""

from collections.abc import Mapping

from barnabas.server.api.produce import FIRST_VERSION_WITH_LEADERS, set_current_leaders
from barnabas.server.errors import error_of
from barnabas.server.lanes._lane import DELAYED, RESPONDED, LaneRequest
from barnabas.server.lanes.delayed_response import DelayedResponse
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.request_context import RequestContext
from barnabas.server.uncommitted_appends import UncommittedAppends
from barnabas.wire._cursor import Sink
from barnabas.wire.error_response import ErrorCounter
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.wire.outgoing import Outgoing

FIRST_FLEXIBLE_VERSION = 9

Failed = Mapping[int, tuple[PartitionProduceResponse, Exception]]
"""The responses and exceptions of partitions that failed, by their number in the request."""


class ProduceOutcome:
    """The response as it is without errors, and what is still to be put into it."""

    __slots__ = (
        "_body",
        "_context",
        "_count_errors",
        "_failed",
        "_throttle_at",
        "_uncommitted",
    )

    def __init__(
        self,
        context: RequestContext,
        sink: Sink,
        throttle_at: int,
        failed: Failed,
        uncommitted: UncommittedAppends[int] | None,
        count_errors: ErrorCounter,
    ) -> None:
        self._throttle_at = throttle_at
        self._body = Outgoing()
        sink.append_to(self._body)
        self._context = context
        self._failed = failed
        self._uncommitted = uncommitted
        self._count_errors = count_errors

    def close_connection(self) -> None:
        """Closes the connection of a client with acks=0, which reads no response: it looks for the
        leader again."""
        _, failure = list(self._failed.values())[-1]
        code, message = error_of(failure, "Produce", self._context)
        self._context.connection.close(f"Produce with acks=0 failed: {code.name} {message}")

    def finish(self, request: LaneRequest, metrics: RequestMetrics, timeout_ms: int) -> int:
        """Responds, or waits until the appends are committed. Returns the outcome for the lane."""
        uncommitted = self._uncommitted
        if uncommitted is not None:
            if self._failed:
                uncommitted.recheck()
            if uncommitted.partitions:
                context = self._context
                operation = uncommitted.wait(context.broker.purgatory, timeout_ms)
                context.allows_next_produce = True
                DelayedResponse(request, context, metrics, operation, self._write_committed)
                return DELAYED
        request.sink.clear()
        request.throttle_at = self._write(request.sink)
        return RESPONDED

    def _write_committed(self, sink: Sink) -> int:
        assert self._uncommitted is not None
        self._uncommitted.expire()
        return self._write(sink)

    def _write(self, sink: Sink) -> int:
        """Writes the response, with the errors that there are now, and counts its error codes.

        Returns the position of the throttle time.
        """
        version = self._context.api_version
        response, _ = ProduceResponse.read(memoryview(self._body), version)
        errors = self._uncommitted.errors if self._uncommitted is not None else []
        throttle_at = self._throttle_at
        if self._failed or errors:
            self._set_errors(response)
            # Only tagged fields follow, of which there are none yet.
            throttle_at = len(response.write(version)) - (4 + (version >= FIRST_FLEXIBLE_VERSION))
            if version >= FIRST_VERSION_WITH_LEADERS:
                set_current_leaders(response, self._context)
            sink.raw(response.write(version))
        else:
            sink.raw(self._body)
        self._count_errors(response)
        return throttle_at

    def _set_errors(self, response: ProduceResponse) -> None:
        number = 0
        errors = dict(self._uncommitted.errors) if self._uncommitted is not None else {}
        for topic in response.responses:
            for position in range(len(topic.partition_responses)):
                if number in self._failed:
                    topic.partition_responses[position], _ = self._failed[number]
                elif number in errors:
                    topic.partition_responses[position].error_code = errors[number]
                number += 1
