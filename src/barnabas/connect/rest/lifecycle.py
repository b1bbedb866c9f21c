"""/connectors/NAME: status, tasks and topics; pause, resume, stop and restart."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.connect.model import RequestFailedError, TargetState
from barnabas.connect.rest.connectors import version_of
from barnabas.connect.rest.forwarding import Handler, calls_herder
from barnabas.connect.rest.requests import (
    herder_of,
    path_number,
    path_text,
    query_flag,
    worker_of,
)
from barnabas.connect.rest.responses import (
    empty_response,
    json_response,
    status_json,
    task_status_json,
)

# Status and tasks


@calls_herder
async def get_status(request: Request) -> Response:
    herder, name = herder_of(request), path_text(request, "connector")
    status = await herder.connector_status(name)
    return json_response(status_json(status, await version_of(herder, name)))


@calls_herder
async def get_tasks(request: Request) -> Response:
    name = path_text(request, "connector")
    configs = await herder_of(request).task_configs(name)
    return json_response(
        [
            {"id": {"connector": name, "task": task}, "config": dict(config)}
            for task, config in enumerate(configs)
        ]
    )


@calls_herder
async def get_task_status(request: Request) -> Response:
    herder, name = herder_of(request), path_text(request, "connector")
    task = path_number(request, "task")
    missing = RequestFailedError(404, f"No status found for task {name}-{task}")
    try:
        status = await herder.connector_status(name)
    except RequestFailedError as error:
        raise missing if error.status == missing.status else error from None
    if task not in status.tasks:
        raise missing
    version = await version_of(herder, name)
    return json_response(task_status_json(task, status.tasks[task], version))


# Target states


def _sets_target(target: TargetState, code: int) -> Handler:
    @calls_herder
    async def handle(request: Request) -> Response:
        await herder_of(request).set_target_state(path_text(request, "connector"), target)
        return empty_response(code)

    return handle


@calls_herder
async def restart_connector(request: Request) -> Response:
    status = await herder_of(request).restart(
        path_text(request, "connector"),
        include_tasks=query_flag(request, "includeTasks"),
        only_failed=query_flag(request, "onlyFailed"),
    )
    if status is None:
        return empty_response(204)
    version = await version_of(herder_of(request), status.name)
    return json_response(status_json(status, version), 202)


@calls_herder
async def restart_task(request: Request) -> Response:
    task = path_number(request, "task")
    await herder_of(request).restart_task(path_text(request, "connector"), task)
    return empty_response(204)


# Topics


@calls_herder
async def get_topics(request: Request) -> Response:
    _require(request, "topic.tracking.enable", "Topic tracking is disabled.")
    name = path_text(request, "connector")
    topics = await herder_of(request).active_topics(name)
    return json_response({name: {"topics": topics}})


@calls_herder
async def reset_topics(request: Request) -> Response:
    _require(request, "topic.tracking.enable", "Topic tracking is disabled.")
    _require(request, "topic.tracking.allow.reset", "Topic tracking reset is disabled.")
    await herder_of(request).reset_active_topics(path_text(request, "connector"))
    return empty_response(202)


def _require(request: Request, setting: str, message: str) -> None:
    if worker_of(request).get(setting, "true").strip().lower() == "false":
        raise RequestFailedError(403, message)


ROUTES = [
    Route("/connectors/{connector}/status", get_status, methods=["GET"]),
    Route("/connectors/{connector}/tasks", get_tasks, methods=["GET"]),
    Route("/connectors/{connector}/tasks/{task}/status", get_task_status, methods=["GET"]),
    Route("/connectors/{connector}/tasks/{task}/restart", restart_task, methods=["POST"]),
    Route("/connectors/{connector}/pause", _sets_target(TargetState.PAUSED, 202), methods=["PUT"]),
    Route(
        "/connectors/{connector}/resume", _sets_target(TargetState.STARTED, 202), methods=["PUT"]
    ),
    Route("/connectors/{connector}/stop", _sets_target(TargetState.STOPPED, 204), methods=["PUT"]),
    Route("/connectors/{connector}/restart", restart_connector, methods=["POST"]),
    Route("/connectors/{connector}/topics", get_topics, methods=["GET"]),
    Route("/connectors/{connector}/topics/reset", reset_topics, methods=["PUT"]),
]
