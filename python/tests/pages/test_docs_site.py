"""`dbt-ripple docs`: the enriched copy of dbt's site says what is known, and only shows what others wrote."""

from __future__ import annotations

import json
import re
import shutil
import time
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docs_project
import hostile_project
import pytest
from click.testing import CliRunner, Result

from dbt_ripple.cli import cli

if TYPE_CHECKING:
    from collections.abc import Callable

    from browsers import OpenPage

ORDERS, STG, SEED = "model.shop.orders", "model.shop.stg_payments", "seed.shop.raw_payments"
SITE = "http://site.example"


def docs(project: Path, *arguments: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        return CliRunner().invoke(cli, ["docs", *arguments], catch_exceptions=True)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return docs_project.make(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def site(shop: Path) -> Path:
    done = docs(shop, "--state", "last", "--static", "-o", "site")
    assert done.exit_code == 0, done.output
    return shop / "site"


@pytest.fixture(scope="module")
def manifest(site: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site / "manifest.json").read_text())
    return found


def column(manifest: dict[str, Any], unique_id: str, name: str) -> str:
    said: str = manifest["nodes"][unique_id]["columns"][name]["description"]
    return said


def inline(description: str) -> str:
    """The description with the target of each link where the link is."""
    targets = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", description, re.MULTILINE))
    said = re.sub(r"^\[[^\]]+\]: \S+$", "", description, flags=re.MULTILINE)
    return re.sub(
        r"\[([^\]]+)\](?:\[([^\]]+)\])?", lambda m: f"[{m[1]}]({targets[m[2] or m[1]]})", said
    )


def test_a_column_says_where_it_comes_from_and_what_it_feeds(manifest: dict[str, Any]) -> None:
    said = inline(column(manifest, ORDERS, "contact"))
    comes = f"Comes from: [stg_payments.email](#!/model/{STG}#columns) (aggregated)"
    assert comes in said
    assert "Computed as: `MAX(email)`" in said
    assert "[dim.v2.contact](#!/model/model.shop.dim.v2#columns) (computed)" in said
    inherited = f"email, inherited from [raw_payments.email](#!/seed/{SEED}#columns) over 2 steps"
    assert f"Personal data: {inherited}" in said
    assert "Tests: 1 warned" in said
    assert "Blast radius: 2 nodes below" in said


def test_what_the_project_wrote_stands_first(manifest: dict[str, Any]) -> None:
    assert column(manifest, STG, "email").startswith("where one writes to\n\n- Comes from:")
    node = manifest["nodes"][STG]["description"]
    assert node.startswith("Payments *as they come*: <b>all</b>.\n\nLineage and trust: coverage ")
    # Without words of the project the table of columns begins with where a column comes from.
    assert column(manifest, ORDERS, "total").startswith("From stg_payments.amount.\n\n")


def test_a_node_says_whose_it_is_and_how_it_stands(manifest: dict[str, Any]) -> None:
    said = unescape(manifest["nodes"][ORDERS]["description"])
    assert f"- Owner: {docs_project.OWNER} (ann@x.example, #fin)\n" in said
    assert "- Criticality: tier1, certified\n" in said
    assert re.search(r"- Last success: 20\d\d-\d\d-\d\d \d\d:\d\d UTC\n", said)
    assert "- Service levels: 1 met, 1 violated\n" in said
    assert f"- Blast radius: 3 nodes below, with [{docs_project.LABEL}]" in said
    assert "decided by [stg_payments.order_id]" in said
    dim = inline(manifest["nodes"]["model.shop.dim.v2"]["description"])
    history = "[1](#!/model/model.shop.dim.v1) (deprecated from 2027-01-01)"
    assert f"- Contract: version 2. History: {history}; " in dim


def test_what_the_search_shows_raw_reads_as_words(manifest: dict[str, Any]) -> None:
    """The app's search shows a piece of a description as it is written."""
    for node in manifest["nodes"].values():
        for said in (node["description"], *(c["description"] for c in node["columns"].values())):
            own = said.partition("Lineage and trust")[2] or said.partition("\n\n- ")[2]
            words = re.split(r"^\[[^\]]+\]: ", own, maxsplit=1, flags=re.MULTILINE)[0]
            for raw in ("![", "](", "**", "###", "| --- |", "badges/", "#!/"):
                assert raw not in words, said


def test_the_overview_has_the_health_and_what_it_had(manifest: dict[str, Any]) -> None:
    overview = manifest["docs"]["doc.dbt.__overview__"]["block_contents"]
    assert overview.startswith("# Lineage and trust of shop\n")
    assert "| Node coverage | 100% (4 of 4 nodes with a query) |" in overview
    assert "| finance | ![coverage 100%](badges/domain.finance.coverage.svg)" in overview
    assert "Welcome to the auto-generated documentation" in overview


def test_the_last_overview_that_is_not_dbts_own_is_the_first_page(
    shop: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    shutil.copytree(shop / "target", target)
    content = json.loads((target / "manifest.json").read_text())
    for package in ("zeta", "shop"):
        content["docs"][f"doc.{package}.__overview__"] = {
            "name": "__overview__",
            "package_name": package,
            "block_contents": f"of {package}",
        }
    (target / "manifest.json").write_text(json.dumps(content))
    done = docs(shop, "--target-path", str(target), "-o", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    made = json.loads((tmp_path / "out/manifest.json").read_text())["docs"]
    assert made["doc.shop.__overview__"]["block_contents"].startswith("# Lineage and trust")
    assert made["doc.shop.__overview__"]["block_contents"].endswith("of shop")
    assert made["doc.zeta.__overview__"]["block_contents"] == "of zeta"


def test_badges_are_red_below_what_the_project_asks(site: Path) -> None:
    def fill(name: str) -> str:
        svg = (site / "badges" / f"{name}.svg").read_text()
        return re.findall(r'fill="(#[0-9a-f]{6})"', svg)[1]

    good, bad, unknown = "#1a7f37", "#b3261e", "#57606a"
    assert fill(f"{ORDERS}.coverage") == good
    assert fill(f"{ORDERS}.slo") == bad  # one of two, and 0.6 is asked for
    assert fill(f"{STG}.slo") == unknown
    assert fill("domain.finance.slo") == bad
    assert fill("project.certified") == good


def test_twice_is_the_same_and_the_originals_stay(shop: Path, tmp_path: Path) -> None:
    def bytes_of(folder: Path) -> dict[str, bytes]:
        files = (f for f in sorted(folder.rglob("*")) if f.is_file())
        return {str(f.relative_to(folder)): f.read_bytes() for f in files}

    before = bytes_of(shop / "target")
    out = tmp_path / "out"
    for _ in range(2):
        assert docs(shop, "--state", "last", "--static", "-o", str(out)).exit_code == 0
        once = bytes_of(out)
        (out / "badges" / "model.shop.gone.slo.svg").write_text("of a model that is no more")
    assert docs(shop, "--state", "last", "--static", "-o", str(out)).exit_code == 0
    assert bytes_of(out) == once
    assert bytes_of(shop / "target") == before
    assert "pictures/logo.svg" in once


def test_nothing_else_of_the_manifest_changes(shop: Path, manifest: dict[str, Any]) -> None:
    original = json.loads((shop / "target/manifest.json").read_text())
    assert manifest["metadata"].pop("dbt_ripple")["version"]
    for one in (original, manifest):
        for section in ("nodes", "sources", "exposures", "docs"):
            for node in one[section].values():
                node.pop("description", None)
                node.pop("block_contents", None)
                node.pop("columns", None)
    assert original == manifest


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("index.html", "no index.html; run `dbt docs generate` first"),
        ("catalog.json", "no catalog.json; run `dbt docs generate` first"),
    ],
)
def test_what_is_missing_is_reported(shop: Path, tmp_path: Path, missing: str, said: str) -> None:
    shutil.copytree(shop / "target", tmp_path / "target")
    (tmp_path / "target" / missing).unlink()
    done = docs(shop, "--target-path", str(tmp_path / "target"))
    assert said in str(done.exception)


def test_runs_that_nobody_named_are_not_taken_for_tests_that_did_not_run(
    shop: Path, tmp_path: Path
) -> None:
    done = docs(shop, "-o", str(tmp_path / "site"))
    assert done.exit_code == 0, done.output
    assert "name the artifacts of the last `dbt build` by --state" in done.stderr
    manifest = json.loads((tmp_path / "site" / "manifest.json").read_text())
    description = manifest["nodes"][ORDERS]["description"]
    assert "without a known result" in description
    assert "not run" not in description
    assert "--state" not in docs(shop, "--state", "last", "-o", str(tmp_path / "other")).stderr


def test_the_target_folder_is_never_written(shop: Path) -> None:
    assert "whose files stay as they are" in str(docs(shop, "-o", "target").exception)


def test_an_enriched_site_is_not_enriched_again(shop: Path, site: Path, tmp_path: Path) -> None:
    done = docs(shop, "--target-path", str(site), "-o", str(tmp_path))
    assert "is enriched already" in str(done.exception)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("{slos: 1}", "no figure 'slos'; did you mean slo?"),
        ("{slo: 90}", "slo is 90; say a share"),
        ("{slo: true}", "slo is True; say a share"),
        ("[slo]", "is no mapping"),
    ],
)
def test_a_threshold_that_is_none_is_refused(tmp_path: Path, said: str, complaint: str) -> None:
    (tmp_path / "dbt_project.yml").write_text(f"vars: {{ripple_red_below: {said}}}")
    assert complaint in str(docs(tmp_path).exception)


def test_a_page_that_somebody_changed_keeps_its_scripts(shop: Path, tmp_path: Path) -> None:
    shutil.copytree(shop / "target", tmp_path / "target")
    index = tmp_path / "target" / "index.html"
    changed = index.read_bytes().replace(b"</body>", b"<script src=own.js></script></body>")
    index.write_bytes(changed)
    done = docs(shop, "--target-path", str(tmp_path / "target"), "-o", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out/index.html").read_bytes() == changed


# --- in a browser ----------------------------------------------------------------------------------


def served(open_page: Callable[..., OpenPage], site: Path, route: str) -> OpenPage:
    """The site as a web server gives it; what it lacks is of dbt's own page (its icon)."""
    one = open_page(viewport={"width": 1300, "height": 1000})

    def answer(asked: Any) -> None:
        file = site / asked.request.url.split("?")[0].removeprefix(f"{SITE}/")
        if file.is_file():
            asked.fulfill(path=file)
        else:
            asked.fulfill(status=200, body="")

    one.page.route(f"{SITE}/**", answer)
    one.page.goto(f"{SITE}/index.html#!/{route}")
    return one


def forgive_the_app(one: OpenPage, *own: str) -> None:
    """Leave out what dbt's app itself does: it looks for its icon, and for addresses of its templates.

    It also shows what projects write as HTML. What that may not do the policy says as an error.
    """
    one.page.wait_for_timeout(200)
    allowed = (f"{SITE}/", *own)
    one.requests[:] = [url for url in one.requests if not url.startswith(allowed)]
    forgiven = (
        *("ERR_FILE_NOT_FOUND", "inline event handler violates", "inline script violates"),
        *("Unsafe attempt to load URL file:", "unrecognized expression: *[data-nav-unique-id"),
    )
    one.errors[:] = [said for said in one.errors if not any(word in said for word in forgiven)]


def details_of(one: OpenPage, column: str) -> Any:
    """Open a column in the table of columns."""
    one.page.get_by_role("cell", name=column, exact=True).click()
    return one.page.locator("td.column-expanded:visible").filter(has_text="Comes from")


@pytest.mark.browser
def test_the_lineage_of_a_column_is_followed_upstream(
    site: Path, open_page: Callable[..., OpenPage]
) -> None:
    one = served(open_page, site, f"model/{ORDERS}")
    page = one.page
    details = details_of(one, "contact")
    assert "MAX(email)" in details.inner_text()
    one.screenshot("docs-column")
    details.get_by_role("link", name="stg_payments.email").click()
    page.wait_for_url(f"**/index.html#!/model/{STG}#columns")
    page.locator("h1", has_text="stg_payments").wait_for()
    details = details_of(one, "email")
    details.get_by_role("link", name="raw_payments.email").first.click()
    page.wait_for_url(f"**/index.html#!/seed/{SEED}#columns")
    page.locator("h1", has_text="raw_payments").wait_for()
    forgive_the_app(one)


@pytest.mark.browser
def test_the_first_page_shows_the_badges(site: Path, open_page: Callable[..., OpenPage]) -> None:
    one = served(open_page, site, "overview")
    one.page.get_by_role("heading", name="Lineage and trust of shop").wait_for()
    pictures = one.page.locator("img[alt^=slo]")
    assert pictures.count() == 2
    widths = pictures.evaluate_all("all => all.map(one => one.complete && one.naturalWidth)")
    assert all(width > 30 for width in widths)
    one.screenshot("docs-overview")
    forgive_the_app(one)


@pytest.mark.browser
def test_the_site_in_one_file_needs_nothing_else(
    site: Path, tmp_path: Path, open_page: Callable[..., OpenPage]
) -> None:
    alone = tmp_path / "static_index.html"
    shutil.copy(site / "static_index.html", alone)
    one = open_page(alone, f"!/model/{ORDERS}")
    one.page.get_by_role("listitem").filter(has_text="decided by").wait_for()
    owner = one.page.locator(".model-markdown li", has_text="Ann").first
    assert docs_project.OWNER in owner.inner_text()
    one.page.goto(one.page.url.split("#")[0] + "#!/overview")
    badge = one.page.locator("img[alt^=coverage]").first
    badge.wait_for()
    assert badge.evaluate("one => one.naturalWidth") > 30
    address = tmp_path.resolve().as_uri()
    asked = [url.removeprefix(f"{address}/") for url in one.requests if url.startswith(address)]
    # The icon and what stands in templates; `x` is the picture that a label names.
    assert all(url in ("x", "") or url.startswith(("$%7B", "%7B%7B")) for url in asked), asked
    forgive_the_app(one, address)


@pytest.mark.browser
def test_what_the_search_of_the_site_shows_is_not_executed(
    site: Path, open_page: Callable[..., OpenPage]
) -> None:
    """The app shows labels, names and code of what it finds as HTML; a policy keeps that from running."""
    one = served(open_page, site, "overview")
    one.page.get_by_placeholder("Search for models").fill("alert")
    one.page.locator("p.ng-binding, h4").filter(has_text="Revenue").first.wait_for()
    one.page.wait_for_timeout(300)
    one.screenshot("docs-search")
    assert one.dialogs == []
    assert any("Content Security Policy" in said for said in one.errors)
    forgive_the_app(one)


HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "a'b\"c`|",
    "\u202eright",
    "שלום",
    "🎉é",
    "a/b ~c%2F?#",
    "n" * 500,
]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "static"),
    [(HOSTILE[0], True), (HOSTILE[1], True), *((name, False) for name in HOSTILE)],
    ids=range(len(HOSTILE) + 2),
)
def test_hostile_names_are_shown_and_lead_where_they_say(
    tmp_path: Path, open_page: Callable[..., OpenPage], name: str, static: bool
) -> None:
    docs_module = pytest.importorskip("dbt.task.docs")

    def naming(tame: str) -> str:
        return f"{name}{tame}"

    target = tmp_path / "target"
    target.mkdir()
    made = hostile_project.project(naming, head=False)
    (target / "manifest.json").write_text(json.dumps(made), encoding="utf-8")
    (target / "catalog.json").write_text('{"metadata": {}, "nodes": {}, "sources": {}}')
    shutil.copy(docs_module.DOCS_INDEX_FILE_PATH, target / "index.html")
    done = docs(tmp_path, *(["--static"] if static else []), "-o", "out")
    assert done.exit_code == 0, done.output + str(done.exception)
    from dbt_ripple.pages.docs_markdown import link

    fct = hostile_project.unique_id("m_fct", naming)
    address = re.search(r"\(#(.*)\)", link("x", fct, "model"))
    assert address is not None
    site = tmp_path / "out"
    if static:
        one = open_page(site / "static_index.html", address[1])
    else:
        one = served(open_page, site, address[1].removeprefix("!/"))
    page = one.page
    above = page.locator(".model-markdown li", has_text="Comes from").get_by_role("link").first
    above.wait_for()
    one.screenshot(f"docs-hostile-{len(name)}-{static}")
    said = above.inner_text()
    above.click()
    page.wait_for_timeout(300)
    heading = page.locator("h1").first.inner_text()
    assert "m_stg" in heading
    assert said.strip("\u2068\u2069")[:40] in heading or "\\u202e" in said
    assert one.dialogs == []
    # But for the hidden results of the app's search, nothing is markup.
    assert page.locator(".model-markdown img[src=x]").count() == 0
    forgive_the_app(one, tmp_path.resolve().as_uri())


# --- large -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_site_stays_a_small_multiple_of_the_plain_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models, width = 2_000, 20
    columns = [f"c{n}" for n in range(width)]
    nodes = {}
    for number in range(models):
        unique_id = f"model.big.m{number}"
        # A layered graph: each model reads two of the layer above, and the first is read by a thousand.
        above = sorted({0, max(number - 50, 0), max(number - 73, 0)} - {number})
        chosen = ", ".join(f"a.{c} + {n} as {c}" for n, c in enumerate(columns))
        joins = " ".join(f"join s.m{p} t{p} on a.c0 = t{p}.c0" for p in above[1:])
        sql = (
            f"select {chosen} from s.m{above[0]} a {joins}"
            if above
            else f"select {', '.join(f'{n} as {c}' for n, c in enumerate(columns))}"
        )
        nodes[unique_id] = {
            "unique_id": unique_id,
            "name": f"m{number}",
            "resource_type": "model",
            "package_name": "big",
            "fqn": ["big", f"m{number}"],
            "original_file_path": f"models/m{number}.sql",
            "path": f"m{number}.sql",
            "schema": "s",
            "alias": f"m{number}",
            "relation_name": f'"s"."m{number}"',
            "description": f"The model {number}.",
            "columns": {},
            "config": {"materialized": "table"},
            "compiled": True,
            "compiled_code": sql,
            "raw_code": sql,
            "language": "sql",
            "depends_on": {"nodes": [f"model.big.m{p}" for p in above], "macros": []},
            "tags": [],
            "meta": {},
        }
    catalog = {
        unique_id: {
            "columns": {c: {"name": c, "type": "int", "index": n} for n, c in enumerate(columns)}
        }
        for unique_id in nodes
    }
    target = tmp_path / "target"
    target.mkdir()
    metadata = {
        "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
        "adapter_type": "duckdb",
        "project_name": "big",
        "dbt_version": "1.11.0",
    }
    written = {"metadata": metadata, "nodes": nodes, "docs": {}}
    (target / "manifest.json").write_text(json.dumps(written))
    (target / "catalog.json").write_text(
        json.dumps({"metadata": {}, "nodes": catalog, "sources": {}})
    )
    (target / "index.html").write_text("<html><head></head></html>")
    first = time.perf_counter()
    assert docs(tmp_path, "-o", "out").exit_code == 0
    started = time.perf_counter()
    assert CliRunner().invoke(cli, ["analyze", "--project-dir", str(tmp_path)]).exit_code == 0
    analysed = time.perf_counter()
    assert docs(tmp_path, "-o", "out").exit_code == 0
    took = time.perf_counter() - analysed
    plain = sum((target / name).stat().st_size for name in ("manifest.json", "catalog.json"))
    rich = sum(
        (tmp_path / "out" / name).stat().st_size for name in ("manifest.json", "catalog.json")
    )
    with capsys.disabled():
        print(
            f"\n2,000 models, 40,000 columns: {rich / plain:.1f} times the plain site's data"
            f" ({plain / 1e6:.0f} MB); {took:.1f} s with the analysis kept, {started - first:.1f} s without"
        )
    assert rich < 8 * plain
    assert took < 60
