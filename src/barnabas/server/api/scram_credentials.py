"""DescribeUserScramCredentials (key 50): the mechanisms and iterations of users' credentials.

Salts and keys are never described. Without users, or with an empty list, all users are described.
"""

from collections import Counter

from barnabas.metadata.image import MetadataImage
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.scram import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    context.require_allowed(AclOperation.DESCRIBE, CLUSTER)
    credentials = _credentials_by_user(context.broker.image)
    mentions = Counter(user.name for user in request.users or ()) or dict.fromkeys(credentials, 1)
    return DescribeUserScramCredentialsResponse(
        results=[
            _describe(user, credentials.get(user), is_duplicate=count > 1)
            for user, count in mentions.items()
        ]
    )


def _credentials_by_user(image: MetadataImage) -> dict[str, list[CredentialInfo]]:
    users: dict[str, list[CredentialInfo]] = {}
    for (name, mechanism), credential in sorted(image.scram.items(), key=lambda item: item[0]):
        info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        users.setdefault(name, []).append(info)
    return users


def _describe(
    user: str, credentials: list[CredentialInfo] | None, *, is_duplicate: bool
) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=user)
    if is_duplicate:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = f"User {user} is named twice in one request."
    elif credentials is None:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"User {user} has no SCRAM credentials."
    else:
        result.credential_infos = credentials
    return result
