"""AlterUserScramCredentials (key 51): set and remove the SCRAM credentials of users.

A user can be changed once in a request: one mechanism, set or removed. An error concerns its user
only.
"""

from collections import Counter

from barnabas.controller.context import ControllerContext, ControllerDecision, require_record_limit
from barnabas.decision import Decision
from barnabas.metadata.features import SCRAM_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import scram_record
from barnabas.security.scram_credentials import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanismCode,
    derive_credential,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import RemoveUserScramCredentialRecord
from barnabas.wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.schema import Message

_Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


def decide(
    request: AlterUserScramCredentialsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    if image.metadata_level < SCRAM_FROM:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "SCRAM users need metadata.version 3.5-IV2 or later: upgrade the feature first.",
        )
    alterations: list[_Alteration] = [*request.deletions, *request.upsertions]
    mentions = Counter(alteration.name for alteration in alterations)
    records: list[Message] = []
    results: dict[str, AlterUserScramCredentialsResult] = {}
    for alteration in alterations:
        name = alteration.name
        result = results[name] = AlterUserScramCredentialsResult(user=name)
        try:
            if mentions[name] > 1:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE, f"User {name} is changed twice in one request."
                )
            records.append(_record(alteration, image))
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    require_record_limit(records)
    return Decision(records, AlterUserScramCredentialsResponse(results=list(results.values())))


def _record(alteration: _Alteration, image: MetadataImage) -> Message:
    """Returns the record of one change. Raises KafkaError if it is not possible."""
    if not alteration.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The name of a user is empty.")
    mechanism = _mechanism(alteration.mechanism)
    if isinstance(alteration, ScramCredentialUpsertion):
        return _upsertion_record(alteration, mechanism)
    if (alteration.name, mechanism) not in image.scram:
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"User {alteration.name} has no {mechanism.sasl_name} credential to remove.",
        )
    return RemoveUserScramCredentialRecord(name=alteration.name, mechanism=mechanism)


def _mechanism(code: int) -> ScramMechanismCode:
    try:
        return ScramMechanismCode(code)
    except ValueError:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"There is no SCRAM mechanism with code {code}."
        ) from None


def _upsertion_record(
    upsertion: ScramCredentialUpsertion, mechanism: ScramMechanismCode
) -> Message:
    if not MIN_ITERATIONS <= upsertion.iterations <= MAX_ITERATIONS:
        raise KafkaError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"{upsertion.iterations} iterations are not between {MIN_ITERATIONS} and "
            f"{MAX_ITERATIONS}.",
        )
    credential = derive_credential(
        mechanism, upsertion.salted_password, upsertion.salt, upsertion.iterations
    )
    return scram_record(upsertion.name, mechanism, credential)
