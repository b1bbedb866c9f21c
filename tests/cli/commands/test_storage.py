"""`barnabas storage`: Kafka's outputs and exit codes, and errors."""

from pathlib import Path

import pytest
from tests.cli.conftest import Barnabas

from barnabas.metadata.frames import decode_record
from barnabas.raft import read_bootstrap
from barnabas.wire.messages.metadata_records import UserScramCredentialRecord
from barnabas.wire.uuid import from_text, to_text

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def test_random_uuid_prints_an_id(barnabas: Barnabas) -> None:
    printed = barnabas("storage", "random-uuid").output
    assert len(from_text(printed.strip())) == 16


def test_info_reports_missing_directories(barnabas: Barnabas, properties: Path) -> None:
    result = barnabas("storage", "info", "-c", properties)
    folder = properties.parent
    assert result.exit_code == 1
    assert result.output == (
        f"Found problems:\n  {folder}/one does not exist\n  {folder}/two does not exist\n\n"
    )


def test_info_shows_what_format_wrote(barnabas: Barnabas, properties: Path) -> None:
    formatted = barnabas("storage", "format", "-c", properties, "-t", CLUSTER, "--standalone")
    folder = properties.parent
    assert formatted.exit_code == 0
    assert formatted.output == (
        f"Formatting dynamic metadata voter directory {folder}/one "
        "with metadata.version 4.3-IV0.\n"
        f"Formatting data directory {folder}/two with metadata.version 4.3-IV0.\n"
    )
    info = barnabas("storage", "info", "-c", properties)
    assert info.exit_code == 0
    assert f"Found log directories:\n  {folder}/one\n  {folder}/two\n" in info.output
    assert f"Found metadata: {{cluster.id={CLUSTER}, directory.id=" in info.output


def test_a_formatted_directory_is_not_formatted_again(barnabas: Barnabas, properties: Path) -> None:
    command = ("storage", "format", "-c", properties, "-t", CLUSTER, "--standalone")
    barnabas(*command)
    again = barnabas(*command)
    assert again.exit_code == 1
    assert "is already formatted. Use --ignore-formatted" in again.output
    ignoring = barnabas(*command, "--ignore-formatted")
    assert (ignoring.exit_code, ignoring.output) == (
        0,
        "All of the log directories are already formatted.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "controller.quorum.voters is not set on this controller"),
        (("-s", "-r", "9.9"), "Unknown release version '9.9'"),
        (("-s", "-f", "bla=1"), "Feature bla is not known"),
        (("-s", "-f", "bla"), "'bla' is not NAME=LEVEL"),
        (("-s", "-f", "transaction.version=77"), "transaction.version can have the levels 0 to 2"),
    ],
)
def test_format_rejects_invalid_options(
    barnabas: Barnabas, properties: Path, arguments: tuple[str, ...], expected: str
) -> None:
    result = barnabas("storage", "format", "-c", properties, "-t", CLUSTER, *arguments)
    assert result.exit_code != 0
    assert expected in result.output
    assert not (properties.parent / "one").exists()


def test_format_rejects_the_directory_of_another_cluster(
    barnabas: Barnabas, properties: Path
) -> None:
    barnabas("storage", "format", "-c", properties, "-t", CLUSTER, "-s")
    result = barnabas("storage", "format", "-c", properties, "-t", "other", "-s", "-g")
    assert result.exit_code == 1
    assert f"belongs to node 1 of cluster {CLUSTER}, not to node 1 of other" in result.output


def test_a_damaged_meta_properties_is_reported(barnabas: Barnabas, properties: Path) -> None:
    directory = properties.parent / "one"
    directory.mkdir()
    (directory / "meta.properties").write_bytes(b"\xff\n")
    for command in ("info",), ("format", "-t", CLUSTER, "-s", "-g"):
        result = barnabas("storage", command[0], "-c", properties, *command[1:])
        assert result.exit_code == 1
        assert f"{directory}/meta.properties" in result.output


def test_a_file_in_place_of_a_directory_is_reported(barnabas: Barnabas, properties: Path) -> None:
    (properties.parent / "one").write_text("")
    assert "one is not a directory" in barnabas("storage", "info", "-c", properties).output
    result = barnabas("storage", "format", "-c", properties, "-t", CLUSTER, "-s")
    assert result.exit_code == 1
    assert "one cannot be formatted: File exists." in result.output


def test_info_reports_directories_of_different_nodes(barnabas: Barnabas, properties: Path) -> None:
    barnabas("storage", "format", "-c", properties, "-t", CLUSTER, "-s")
    meta = properties.parent / "two" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    result = barnabas("storage", "info", "-c", properties)
    assert result.exit_code == 1
    assert f"belong to node 1 of cluster {CLUSTER} and node 2 of cluster {CLUSTER}" in result.output


FIRST_VOTERS = f"1@127.0.0.1:9093:{to_text(b'A' * 16)},2@127.0.0.1:9095:{to_text(b'B' * 16)}"


def test_an_initial_voter_gets_the_directory_id_of_the_voter_list(
    barnabas: Barnabas, properties: Path
) -> None:
    command = ("storage", "format", "-c", properties, "-t", CLUSTER, "-I", FIRST_VOTERS)
    assert barnabas(*command).exit_code == 0
    metadata_directory = properties.parent / "one"
    assert (
        f"directory.id={to_text(b'A' * 16)}" in (metadata_directory / "meta.properties").read_text()
    )
    folder = metadata_directory / "__cluster_metadata-0"
    assert (folder / "00000000000000000000-0000000000.checkpoint").exists()


def test_a_joining_controller_is_formatted_without_voters(
    barnabas: Barnabas, properties: Path
) -> None:
    assert barnabas("storage", "format", "-c", properties, "-t", CLUSTER, "-N").exit_code == 0
    assert not (properties.parent / "one" / "__cluster_metadata-0").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-s", "-N"), "choose one of --standalone"),
        (("-I", "1@127.0.0.1:9093"), "is not id@host:port:directory-id"),
        (("-I", FIRST_VOTERS.replace("2@", "1@")), "Node 1 is named twice"),
        (("-I", FIRST_VOTERS.replace("1@", "3@")), "initial voters are [2, 3]"),
        (("-I", ","), "There are no initial voters"),
    ],
)
def test_format_rejects_an_invalid_voter_set(
    barnabas: Barnabas, properties: Path, arguments: tuple[str, ...], expected: str
) -> None:
    result = barnabas("storage", "format", "-c", properties, "-t", CLUSTER, *arguments)
    assert result.exit_code != 0
    assert expected in result.output
    assert not (properties.parent / "one").exists()


@pytest.mark.parametrize("release", ["4.3-IV0", "3.5-IV1"])
def test_scram_users_exist_from_the_first_start(
    barnabas: Barnabas, properties: Path, release: str
) -> None:
    user = ("--add-scram", "SCRAM-SHA-256=[name=admin,password=secret]")
    result = barnabas(
        "storage", "format", "-c", properties, "-t", CLUSTER, "-s", "-r", release, *user
    )
    bootstrap = properties.parent / "one" / "bootstrap.checkpoint"
    if release == "3.5-IV1":
        assert result.exit_code == 1
        assert "SCRAM is only supported in metadata.version 3.5-IV2 or later." in result.output
        assert not bootstrap.exists()
        return
    assert result.exit_code == 0, result.output
    records = [decode_record(frame) for frame in read_bootstrap(str(bootstrap.parent))]
    (credential,) = [each for each in records if isinstance(each, UserScramCredentialRecord)]
    assert (credential.name, credential.mechanism, credential.iterations) == ("admin", 1, 4096)
    assert b"secret" not in bootstrap.read_bytes()
