"""`dbt-ripple gate`: formats, exit codes, ripple.yml."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from twin_project import BROKEN, Command

from dbt_ripple.errors import RippleError
from dbt_ripple.governance.ripple_yml import read_config
from dbt_ripple.governance.rules import RULES
from dbt_ripple.rendering.json_documents import schema

REQUIRED = "rules: {tags_required: {level: warn, tier1: [description]}}\n"


@pytest.fixture
def project(twin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bad twin's artifacts and what it asks for, and nothing else; the working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "ripple.yml").write_text(REQUIRED)
    (folder / "target").symlink_to(twin / "bad" / "target")
    (folder / "prod").symlink_to(twin / "good" / "target")
    monkeypatch.chdir(folder)
    return folder


def test_exit_codes(project: Path, command: Command) -> None:
    assert command("gate", "--state", "prod")[0] == 1
    only = ["column_removed", "blast_radius"]
    rules = {name: "warn" if name in only else "off" for name in RULES}
    (project / "ripple.yml").write_text(json.dumps({"rules": rules}))
    code, out, _ = command("gate", "--state", "prod")
    assert (code, out.split()[0]) == (0, "CAUTION")
    assert command("gate", "--state", "prod", "--fail-on", "caution")[0] == 1
    (project / "ripple.yml").write_text("rules:\n" + "".join(f"  {r}: off\n" for r in RULES))
    code, out, _ = command("gate", "--state", "prod", "--fail-on", "caution")
    assert (code, out.split()[0]) == (0, "APPROVED")


def test_json_has_the_shape_of_the_contract(project: Path, command: Command) -> None:
    document = json.loads(command("gate", "--state", "prod", "--format", "json")[1])
    jsonschema.Draft202012Validator(schema("gate")).validate(document)
    assert list(document) == [
        "schema_version",
        "decision",
        "risk_level",
        "blast_radius",
        "reason",
        "recommendation",
        "findings",
        "affected",
        "removed",
    ]
    people = ("owner", "owner_name", "owner_email", "owner_channel", "domain")
    assert {tuple(k for k in f if k not in people) for f in document["findings"]} == {
        ("rule", "level", "unique_id", "column", "message", "message_code", "message_arguments")
    }
    whose = {f["rule"]: [f.get(key) for key in people] for f in document["findings"]}
    assert whose["column_removed"][0] == "Customer Insights"
    # Of what had an owner on base only, nobody answers now.
    assert whose["owner_removed"] == whose["owner_missing"] == [None] * 5
    optional = ("may_read", "expressions", "owner_name", "owner_email", "owner_channel", "domain")
    affected = [[key for key in a if key not in optional] for a in document["affected"]]
    assert {tuple(keys) for keys in affected} == {
        (
            *("unique_id", "name", "asset_type", "affected_references"),
            *("severity", "owner", "path"),
        )
    }
    assert document["blast_radius"] == len(document["affected"]) == 6


def test_markdown_is_a_comment_that_can_be_found_again(project: Path, command: Command) -> None:
    out = command("gate", "--state", "prod", "--format", "markdown", "--approved-by", "Ada")[1]
    lines = out.splitlines()
    assert lines[0] == "<!-- dbt-ripple gate -->"
    assert lines[1].startswith("### ⛔ BLOCKED: ")
    assert "flowchart LR" in lines
    assert sum(line.startswith("| block |") for line in lines) == 5
    assert sum("; approved by Ada" in line for line in lines) == 2
    # Nobody is called by what an owner happens to be named.
    assert "logistics@twin" not in out
    assert "- country_code" in out.partition("#### What changed")[2]


def test_annotations(project: Path, command: Command) -> None:
    out = command("gate", "--state", "prod", "--format", "github")[1]
    lines = out.splitlines()
    assert len(lines) == len(BROKEN) + 1
    assert all(line.startswith(("::error ", "::warning ")) for line in lines)
    assert (
        "::error file=models/marts/dim_customers.sql,line=1,title=column_removed::"
        "dim_customers.country_code: removed"
    ) in lines
    assert lines[-1] == "::error title=dbt-ripple gate::BLOCKED: risk medium, reaches 6 assets"


def test_sarif_has_what_its_schema_requires(project: Path, command: Command) -> None:
    log = json.loads(command("gate", "--state", "prod", "--format", "sarif")[1])
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("warning", "error")
    assert len(run["results"]) == len(BROKEN)
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["artifactLocation"]["uri"]
        assert physical["region"]["startLine"] >= 1
        assert all(isinstance(v, str) for v in result["partialFingerprints"].values())
    assert len({r["partialFingerprints"]["finding/v1"] for r in run["results"]}) == len(BROKEN)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rules: {owner_mising: warn}", "did you mean owner_missing"),
        ("rules: {owner_missing: blok}", "did you mean block?"),
        ("rules: {owner_missing: 7}", "say off, warn, block"),
        ("rules: {owner_missing: {above: 3}}", "has no threshold"),
        ("rules: {blast_radius: {above: -1}}", "negative"),
        ("rules: {blast_radius: {above: many}}", "Expected `int"),
        ("rules: {blast_radius: {abov: 3}}", "unknown field `abov`"),
        ("ruls: {}", "unknown field `ruls`"),
        ("rules: [", "cannot be read"),
        ("exceptions: [{rule: pii_exposed, unique_id: x, reason: ' '}]", "has no reason"),
        ("exceptions: [{rule: pii, unique_id: x, reason: r}]", "no rule 'pii'"),
    ],
)
def test_a_mistake_in_ripple_yml_is_refused(
    project: Path, command: Command, text: str, says: str
) -> None:
    (project / "ripple.yml").write_text(text)
    code, out, err = command("gate", "--state", "prod")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "ripple.yml" in err
    assert says in err


def test_init_writes_what_the_project_declares_and_overwrites_nothing(
    project: Path, command: Command
) -> None:
    (project / "ripple.yml").unlink()
    assert command("gate", "--init")[:2] == (0, "ripple.yml\n")
    text = (project / "ripple.yml").read_text()
    assert max(map(len, text.splitlines())) <= 80
    config = read_config(project)
    assert list(config.levels) == list(RULES)
    assert config.level("owner_missing") == "warn"  # somebody owns something, and not all of it
    assert config.level("owner_removed") == config.level("reader_broken") == "block"
    assert config.threshold("blast_radius") > 0
    assert command("gate", "--state", "prod")[0] == 1
    code, out, err = command("gate", "--init")
    assert (code, out) == (2, "")
    assert "not overwritten" in err
    assert (project / "ripple.yml").read_text() == text


@pytest.mark.parametrize(
    ("project_yml", "ripple_yml", "says"),
    [
        ("{ripple_rules: {owner_missing: block}}", "rules: {owner_missing: warn}", "different"),
        ("{ripple_rules: {owner_mising: block}}", "", "did you mean owner_missing"),
        ("{dbt_ripple: {ripple_rules: {tags_required: {teir1: [owner]}}}}", "", "mean tier1"),
        ("{ripple_rules: {tags_required: {tier1: [ownr]}}}", "", "did you mean owner"),
        ("{ripple_exceptions: nothing}", "", "no seed of that name"),
        ("{ripple_exceptions: [{rule: pii_exposed}]}", "", "unique_id"),
    ],
)
def test_what_the_vars_of_the_package_say_wrong_is_refused(
    tmp_path: Path, project_yml: str, ripple_yml: str, says: str
) -> None:
    (tmp_path / "dbt_project.yml").write_text(f"vars: {project_yml}\n")
    (tmp_path / "ripple.yml").write_text(ripple_yml)
    with pytest.raises(RippleError, match=says.replace("?", r"\?")):
        read_config(tmp_path)


def test_the_gate_and_the_warehouse_have_one_list(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text(
        "vars:\n  ripple_rules: {owner_missing: off}\n  dbt_ripple:\n"
        "    ripple_rules: {owner_missing: block, of_another_package: warn,"
        " tags_required: {tier1: owner}}\n    ripple_exceptions: accepted\n"
    )
    (tmp_path / "ripple.yml").write_text(
        "rules: {owner_missing: block, blast_radius: {above: 3}}\n"
        "exceptions: [{rule: pii_exposed, unique_id: a, reason: r}]\n"
    )
    (tmp_path / "seeds" / "deep").mkdir(parents=True)
    rows = "rule,unique_id,column_name,reason\nowner_missing,b,,r\n"
    (tmp_path / "seeds" / "deep" / "accepted.csv").write_text(rows)
    config = read_config(tmp_path)
    assert config.levels == {"owner_missing": "block"}
    assert (config.threshold("blast_radius"), config.required) == (3, {"tier1": ["owner"]})
    assert config.excepts("pii_exposed", "a", None) and config.excepts("owner_missing", "b", None)


def test_exceptions_may_be_a_seed(project: Path, command: Command) -> None:
    (project / "ripple.yml").write_text(f"{REQUIRED}exceptions: accepted.csv\n")
    rows = ["rule,unique_id,column_name,reason"]
    rows += [
        f"{rule},model.twin.mailing_list,,a test list" for rule in ("owner_missing", "pii_untagged")
    ]
    (project / "accepted.csv").write_text("\n".join(rows))
    document = json.loads(command("gate", "--state", "prod", "--format", "json")[1])
    assert len(document["findings"]) == len(BROKEN) - 2
    (project / "accepted.csv").write_text("\n".join([*rows, "pii_exposed,x,,"]))
    assert "has no reason" in command("gate", "--state", "prod")[2]
    (project / "accepted.csv").write_text("rule,id\npii_exposed,x")
    assert "its columns are rule" in command("gate", "--state", "prod")[2]
    (project / "accepted.csv").unlink()
    assert "cannot be read" in command("gate", "--state", "prod")[2]


def test_what_is_missing_is_reported(project: Path, command: Command) -> None:
    for arguments in ((), ("--state", "nowhere")):
        code, out, err = command("gate", *arguments)
        assert (code, out) == (2, "")
        assert "--state" in err
    code, _, err = command("gate", "--state", "prod", "--approved-by", " ")
    assert code == 2
    assert "the name is empty" in err
