// What stands beside the picture: the project, or all that is known of what is selected.

import { bdi, h } from "./dom.js";
import { groupLabel } from "./draw_groups.js";
import { severity } from "./groups.js";
import { acceptor } from "./state.js";
import { sample } from "./svg.js";
import { count, shown, shownLines } from "./text.js";
import { classOf, hidesColumns } from "./view.js";
import { STATES, TYPE_WORDS, stateWord, statusWord, typeWord } from "./words.js";

const LISTED = 60;
const LISTED_OF_OWNER = 8;
const FEEDING_MOST = 10;

/** A list that shows its first entries, and the rest when it is asked. */
function list(items, entry, label, listed = LISTED) {
  const element = h("ul", { class: "list", "aria-label": label });
  const add = (from, to) => items.slice(from, to).forEach((item) => element.append(h("li", {}, entry(item))));
  // One that is left out takes as much room as the line that says so.
  const first = items.length === listed + 1 ? items.length : listed;
  add(0, first);
  if (items.length > first) {
    const more = h(
      "button",
      {
        type: "button",
        class: "link",
        onclick: () => {
          const from = element.children.length - 1;
          more.parentElement.remove();
          add(from, items.length);
        },
      },
      `and ${(items.length - first).toLocaleString("en")} more`,
    );
    element.append(h("li", {}, more));
  }
  return element;
}

function fact(name, ...value) {
  const known = value.flat().filter((one) => one !== null && one !== undefined && one !== "" && one !== false);
  return known.length ? [h("dt", {}, name), h("dd", {}, known)] : [];
}

function section(title, ...children) {
  return h("section", {}, h("h3", {}, title), children);
}

function badge(text, kind) {
  return h("span", { class: `badge ${kind}` }, bdi(shown(text)));
}

function moment(text) {
  return text ? h("time", { datetime: text }, text.replace("T", " ").replace(/(\.\d+)?(\+00:00|Z)$/, " UTC")) : null;
}

function sql(text) {
  return h("pre", { class: "sql", tabindex: 0, role: "region", "aria-label": "SQL expression" }, h("code", {}, bdi(shownLines(text))));
}

function percent(part, whole) {
  return whole ? `${part.toLocaleString("en")} of ${whole.toLocaleString("en")} (${Math.floor((100 * part) / whole)}%)` : "none";
}

export class Panels {
  /** @param actions `select(node, vertex)`, `update(change)`. */
  constructor(project, actions) {
    this.project = project;
    this.actions = actions;
  }

  nodeLink(index, note) {
    const node = this.project.nodes[index];
    const state = this.project.state(index);
    return [
      h(
        "button",
        { type: "button", class: "link", onclick: () => this.actions.select(index, null) },
        bdi(shown(node.name)),
      ),
      state ? [" ", badge(stateWord(state.state), `state-${state.state}`)] : null,
      h("span", { class: "aside" }, ` ${typeWord(node)}`, note ? ` · ${note}` : ""),
    ];
  }

  vertexLink(vertex, ...notes) {
    const { project } = this;
    const node = project.nodes[project.nodeOf(vertex)];
    const name = project.isRows(vertex) ? "(rows)" : project.columnName(vertex);
    return [
      h(
        "button",
        { type: "button", class: "link", onclick: () => this.actions.select(node.index, vertex) },
        bdi(shown(node.name)),
        ".",
        bdi(shown(name)),
      ),
      notes.map((note) => h("span", { class: "aside" }, ` ${note}`)),
    ];
  }

  // --- the project -------------------------------------------------------------------------------------

  overview(state) {
    const { project } = this;
    const types = new Map();
    for (const node of project.nodes) types.set(node.resource_type, (types.get(node.resource_type) ?? 0) + 1);
    const unseen = project.nodes.filter((node) => statusWord(node));
    const { health } = project;
    return [
      h("h2", { id: "details-title", tabindex: -1 }, bdi(shown(project.name))),
      project.compare ? this.change(state) : null,
      h(
        "dl",
        {},
        fact("Contents", [...types].map(([type, n]) => count(n, TYPE_WORDS[type] ?? type)).join(", ")),
        fact("Columns", project.columnCount.toLocaleString("en")),
        fact("Tests", project.tests.length.toLocaleString("en")),
        fact("Followed", percent(health.covered_nodes, health.nodes), " of the nodes with a query"),
        fact("Tier 1 columns followed", health.tier1_columns ? percent(health.covered_tier1_columns, health.tier1_columns) : null),
        fact("Certified with a complete path", health.certified_nodes ? percent(health.complete_nodes, health.certified_nodes) : null),
        fact("Not known who reads", health.unknown_downstreams ? count(health.unknown_downstreams, "relation") : null),
        fact("Service levels", health.slos && health.slos.met + health.slos.violated + health.slos.unknown
          ? `${health.slos.met} met, ${health.slos.violated} violated, ${health.slos.unknown} unknown` : null),
        fact("Warehouse", project.adapter ? shown(project.adapter) : null),
        fact("Artifacts of", moment(project.generated)),
        fact("Made by", `dbt-ripple ${project.ripple}${project.dbt ? `, dbt ${shown(project.dbt)}` : ""}`),
      ),
      project.has_catalog
        ? null
        : h("p", { class: "warning" }, "There is no catalog.json: the warehouse's columns and types are known only as far as the project says them."),
      project.compare ? null : this.#feedingMost(),
      unseen.length
        ? section(
            `Not followed (${unseen.length.toLocaleString("en")})`,
            h("p", {}, "Every column of these may depend on all that they read."),
            list(unseen, (node) => [this.nodeLink(node.index), node.reason ? h("p", { class: "reason" }, shown(node.reason)) : null], "Nodes that were not followed"),
          )
        : null,
      project.notes.length ? section("Notes", list(project.notes, (note) => shown(note), "Notes")) : null,
    ];
  }

  /** Where to begin in a project that one does not know. */
  #feedingMost() {
    const { nodes } = this.project;
    const most = nodes
      .filter((node) => node.blast_radius && node.resource_type !== "source")
      .sort((a, b) => b.blast_radius - a.blast_radius || (a.name < b.name ? -1 : 1))
      .slice(0, FEEDING_MOST);
    if (!most.length) return null;
    return section("What feeds most", list(most, (node) => this.nodeLink(node.index, `feeds ${count(node.blast_radius, "node")}`), "What feeds most"));
  }

  /** The nodes of a group of the picture. */
  group(box) {
    return [
      h("h2", { id: "details-title", tabindex: -1 }, bdi(groupLabel(box))),
      h("p", {}, `${count(box.nodes.length, "node")}; those that feed most stand first.`),
      list(box.nodes, (node) => this.#feeding(node), "Nodes of the group"),
    ];
  }

  #feeding(node) {
    const { blast_radius } = this.project.nodes[node];
    return this.nodeLink(node, blast_radius ? `feeds ${count(blast_radius, "node")}` : null);
  }

  change(state) {
    const { compare } = this.project;
    const { counts } = compare;
    const said = STATES.filter((state) => counts[state]).map((state) => `${counts[state].toLocaleString("en")} ${stateWord(state)}`);
    return section(
      "The change",
      h("p", {}, "Compared with ", bdi(shown(compare.base)), ": ", said.join(", ") || "nothing differs", "."),
      h("p", {}, `Tests to run: ${counts.tests_to_run.toLocaleString("en")} of ${counts.tests.toLocaleString("en")}`,
        counts.unit_tests_to_run ? `, and ${count(counts.unit_tests_to_run, "unit test")}` : "",
        counts.tests_proven ? `; proven by others: ${counts.tests_proven.toLocaleString("en")}` : "",
        counts.tests_blocked ? `; below what cannot be built: ${counts.tests_blocked.toLocaleString("en")}` : "", "."),
      this.#byOwner([...compare.states.keys()].filter(acceptor(state, this.project))),
      compare.notes.length ? h("details", {}, h("summary", {}, `Notes on the comparison (${compare.notes.length})`), list(compare.notes, (note) => shown(note), "Notes on the comparison")) : null,
    );
  }

  /** The nodes of a change, by who answers for them: whoever has most below what is his comes first. */
  #byOwner(all) {
    const { project } = this;
    const owners = new Map();
    for (const node of all) {
      const owner = project.nodes[node].owner ?? "";
      owners.set(owner, [...(owners.get(owner) ?? []), node]);
    }
    const reach = (node) => project.nodes[node].blast_radius;
    const isStopped = (node) => project.state(node).state === "stopped";
    const groups = [...owners].map(([owner, nodes]) => {
      nodes.sort((a, b) => isStopped(a) - isStopped(b) || reach(b) - reach(a) || severity(project, a) - severity(project, b));
      return { owner, nodes, most: Math.max(...nodes.map(reach)) };
    });
    groups.sort((a, b) => b.most - a.most || (a.owner < b.owner ? -1 : 1));
    return groups.map(({ owner, nodes }) => {
      const states = STATES.map((state) => [state, nodes.filter((node) => project.state(node).state === state).length]).filter(([, n]) => n);
      const counted = states.map(([state, n]) => `${n.toLocaleString("en")} ${stateWord(state)}`).join(", ");
      const heading = owner || groups.length > 1
        ? [owner ? bdi(shown(owner)) : "Nobody is named as owner", h("span", { class: "aside" }, ` ${counted}`)]
        : "Those that feed most first";
      return h("section", { class: "owner" },
        h("h4", {}, heading),
        list(nodes, (node) => [this.#feeding(node), h("p", { class: "reason" }, this.#difference(node))], owner || "Nobody is named", LISTED_OF_OWNER));
    });
  }

  /** What differs of a node, in a line. */
  #difference(node) {
    const { project } = this;
    const { state, why, columns } = project.state(node);
    if (state !== "changed" && state !== "impacted") return shown(why);
    const own = [...columns].filter(([, change]) => change.change !== "upstream");
    const [rows, some] = [own, [...columns]].map((all) => all.some(([vertex]) => project.isRows(vertex)));
    const told = (all, hasRows, words) => {
      const names = all.filter(([vertex]) => !project.isRows(vertex)).map(([vertex]) => shown(project.columnName(vertex)));
      const first = names.length > 4 ? names.slice(0, 3) : names;
      const more = names.length > first.length ? ` and ${names.length - first.length} more columns` : "";
      return `${[...(hasRows ? ["rows"] : []), ...first].join(", ")}${more}: ${words}`;
    };
    if (own.length) return told(own, rows, "defined otherwise");
    return columns.size ? told([...columns], some, "changed by what it reads") : shown(why);
  }

  // --- a node ------------------------------------------------------------------------------------------

  node(index, box) {
    const { project } = this;
    const node = project.nodes[index];
    const state = project.state(index);
    return [
      h("h2", { id: "details-title", tabindex: -1 }, bdi(shown(node.name))),
      h("p", { class: "badges" }, badge(typeWord(node), "plain"),
        state ? badge(stateWord(state.state), `state-${state.state}`) : null,
        statusWord(node) && state?.state !== "broken" ? badge(statusWord(node), node.status) : null,
        node.certified ? badge("certified", "good") : null,
        node.canonical ? badge("canonical", "good") : null,
        node.criticality ? badge(node.criticality, "plain") : null,
        project.holdsPersonalData(index) ? badge("personal data", "pii") : null),
      node.label && node.label !== node.name ? h("p", {}, bdi(shown(node.label))) : null,
      this.#unknown(node),
      state ? this.#nodeChange(state) : null,
      node.description ? h("p", { class: "description" }, bdi(shownLines(node.description))) : null,
      box ? this.#steps(index, box) : null,
      h(
        "dl",
        {},
        fact("Relation", node.relation && bdi(shown(node.relation))),
        fact("Layer", bdi(shown(node.layer))),
        fact("Materialized", node.materialized && shown(node.materialized)),
        fact("Owner", this.#owner(node)),
        fact("Domain", node.domain && bdi(shown(node.domain))),
        fact("Group", node.group && bdi(shown(node.group))),
        fact("Access", node.access && shown(node.access)),
        fact("Tags", (node.tags ?? []).map((tag) => badge(tag, "plain"))),
        fact("Contract", node.contract_version && `version ${shown(node.contract_version)}`, node.contract_enforced ? (node.contract_version ? ", enforced" : "enforced") : null),
        fact("Last run", node.last_run && [shown(node.last_run.status), " ", moment(node.last_run.at)]),
        fact("Last success", moment(node.last_success)),
        fact("Freshness", node.freshness && [shown(node.freshness.status ?? ""), node.freshness.max_loaded_at ? [", loaded ", moment(node.freshness.max_loaded_at)] : null]),
        fact("Blast radius", `${count(node.blast_radius, "node")} below it`),
        fact("File", node.path && bdi(shown(node.path))),
        fact("Id", bdi(shown(node.unique_id))),
      ),
      (node.contract_versions ?? []).length
        ? section("Contract versions", list(node.contract_versions, (version) => [bdi(shown(version.version)), version.since ? [" since ", moment(version.since)] : null, version.until ? [" until ", moment(version.until)] : null, version.is_latest ? " (latest)" : null, version.deprecation_date ? ` deprecated from ${shown(version.deprecation_date)}` : null], "Contract versions"))
        : null,
      this.#columns(index),
      this.#around(index, "Reads", project.parents[index]),
      this.#around(index, "Read by", project.children[index]),
      this.#tests(project.nodeTests[index], state),
    ];
  }

  #unknown(node) {
    const said = [];
    if (node.status === "opaque") said.push("Its SQL could not be followed: every column of it may depend on all that it reads.");
    if (node.status === "broken") said.push("It reads something that is not there.");
    if (node.reason) said.push(shown(node.reason));
    if (!node.path_is_complete && !statusWord(node)) said.push("Something above it could not be followed, so what is shown above may not be all.");
    return said.length ? h("div", { class: "warning", role: "note" }, said.map((text) => h("p", {}, text))) : null;
  }

  #owner(node) {
    if (!node.owner && !node.owner_email && !node.owner_channel) return "nobody is named";
    const parts = [node.owner_name ?? node.owner, node.owner_email, node.owner_channel];
    return [...new Set(parts.filter(Boolean))].map((part, i) => [i ? ", " : "", bdi(shown(part))]);
  }

  #steps(index, box) {
    const { actions } = this;
    const step = (side, what) =>
      box[side].hidden || box[side].canHide
        ? h("button", { type: "button", onclick: () => actions.grow(box, side) },
            box[side].hidden ? `Show ${box[side].hidden} more ${what}` : `Hide ${what}`)
        : null;
    return h("p", { class: "steps" }, step("up", "upstream"), step("down", "downstream"),
      box.columns ? h("button", { type: "button", onclick: () => actions.columns(box) }, hidesColumns(box) ? "Hide columns in the picture" : "Show columns in the picture") : null,
      h("button", { type: "button", onclick: () => actions.select(index, this.project.rowsOf(index)) }, "Follow its rows"));
  }

  #nodeChange(state) {
    const columns = [...state.columns].filter(([vertex]) => !this.project.isRows(vertex));
    const { rows } = state.difference ?? {};
    return section(
      "In the change",
      h("p", {}, shown(state.why)),
      rows
        ? h("div", { class: "change" }, h("p", {}, rows.change === "upstream" ? "Its rows differ, by what it reads." : "Which rows there are is defined otherwise."), (rows.before ?? []).map((text) => h("pre", { class: "before" }, h("code", {}, bdi(shownLines(text))))), (rows.after ?? []).map((text) => h("pre", { class: "after" }, h("code", {}, bdi(shownLines(text))))))
        : null,
      columns.length
        ? list(columns, ([vertex, change]) => [this.vertexLink(vertex, changeSentence(change)), this.#beforeAfter(change)], "Columns that differ")
        : null,
      state.difference?.reordered ? h("p", {}, "Its columns stand in another order.") : null,
    );
  }

  #beforeAfter(change) {
    if (change.change === "upstream" || change.change === "renamed" || change.change === "retyped") return null;
    return [
      change.before ? h("pre", { class: "before" }, h("code", { "aria-label": "before" }, bdi(shownLines(change.before)))) : null,
      change.after ? h("pre", { class: "after" }, h("code", { "aria-label": "after" }, bdi(shownLines(change.after)))) : null,
    ];
  }

  #columns(index) {
    const { project } = this;
    const columns = project.columnsOf(index);
    if (!columns.length) return null;
    return section(
      `Columns (${columns.length.toLocaleString("en")})`,
      list(columns, (vertex) => {
        const column = project.column(vertex);
        const change = project.state(index)?.columns.get(vertex);
        return [
          h("button", { type: "button", class: "link mono", onclick: () => this.actions.select(index, vertex) }, bdi(shown(column.name))),
          column.type ? h("span", { class: "aside" }, " ", bdi(shown(column.type))) : null,
          column.pii ? [" ", badge(column.pii.origin === "declassified" ? "declassified" : column.pii.kind, "pii")] : null,
          change ? [" ", badge(change.change === "upstream" ? "differs" : change.change, "state-changed")] : null,
        ];
      }, "Columns"),
    );
  }

  #around(index, title, nodes) {
    if (!nodes.length) return null;
    return section(`${title} (${nodes.length.toLocaleString("en")})`, list(nodes, (node) => this.nodeLink(node), title));
  }

  #tests(tests, state) {
    if (!tests?.length) return null;
    const { project } = this;
    return section(
      `Tests (${tests.length.toLocaleString("en")})`,
      list(tests, (index) => {
        const test = project.tests[index];
        const said = ["run", "proven", "blocked"].find((kind) => state?.[kind]?.[test.unique_id]);
        const words = { run: "to run", proven: "proven by others", blocked: "cannot run" };
        return [
          bdi(shown(test.name)),
          h("span", { class: "aside" }, ` ${shown(test.kind)}${test.severity === "warn" ? ", warns" : ""}`),
          test.last_run ? [" ", badge(test.last_run.status, test.last_run.succeeded ? "good" : "state-broken")] : null,
          test.failures ? h("span", { class: "aside" }, ` ${count(test.failures, "row")}`) : null,
          said ? [" ", badge(words[said], "state-impacted"), h("p", { class: "reason" }, shown(state[said][test.unique_id]))] : null,
        ];
      }, "Tests"),
    );
  }

  // --- a column ----------------------------------------------------------------------------------------

  column(vertex) {
    const { project } = this;
    const index = project.nodeOf(vertex);
    const node = project.nodes[index];
    const column = project.column(vertex);
    const state = project.state(index);
    const change = state?.columns.get(vertex);
    return [
      h("h2", { id: "details-title", tabindex: -1 }, bdi(shown(column.rows ? "(rows)" : column.name))),
      h("p", {}, column.rows ? "Which rows there are in " : "of ", this.nodeLink(index)),
      this.#unknown(node),
      change
        ? section("In the change", h("p", {}, column.rows ? shown(state.why) : changeSentence(change)), column.rows ? null : this.#beforeAfter(change))
        : state && project.compare
          ? section("In the change", h("p", {}, state.state === "broken" ? shown(state.why) : "It is the same as before."))
          : null,
      column.description ? h("p", { class: "description" }, bdi(shownLines(column.description))) : null,
      column.expression ? section("Expression", sql(column.expression)) : null,
      h(
        "dl",
        {},
        fact("Type", column.type && bdi(shown(column.type))),
        fact("Personal data", column.pii && [badge(column.pii.kind, "pii"), ` ${column.pii.origin}`, column.pii.reason ? `: ${shown(column.pii.reason)}` : ""]),
        fact("It comes along", column.pii?.origin === "inherited" ? bdi(shown(column.pii.path)) : null),
        fact("Blast radius", column.rows ? null : `${count(column.blast, "node")} below it`),
      ),
      this.#links("Comes from", project.linksInto(vertex), project.links.parent, this.#noOrigin(node, column, change)),
      this.#links("Goes into", project.linksOutOf(vertex), project.links.child, "Nothing that is known."),
      this.#tests(column.rows ? [] : column.tests, state),
    ];
  }

  /** Why no link leads into a column: there is nothing above it, or it is not known what there is. */
  #noOrigin(node, column, change) {
    if (change?.change === "removed") return "It is gone.";
    if (node.status === "leaf") return "Nothing in this project.";
    if (node.status === "analysed" && column.isFollowed) return "Of no column: a constant, a count of rows, or the like.";
    if (node.status === "analysed") return "Not known: its query does not show it; only the project's files or the catalog list it.";
    return `Not known: ${node.reason ? shown(node.reason) : "its SQL could not be followed"}. It may depend on all that the ${typeWord(node)} reads.`;
  }

  #links(title, links, end, none) {
    const { project } = this;
    if (!links.length) return section(title, h("p", {}, none));
    return section(
      `${title} (${links.length.toLocaleString("en")})`,
      list([...links], (link) => {
        const { kind, may } = classOf(project.links.class[link]);
        const words = project.kindsOf(link).join(", ");
        return [
          sample(`${kind}${may ? " may" : ""}`, may ? "may read" : kind), " ",
          this.vertexLink(end[link], words),
        ];
      }, title),
    );
  }
}

function changeSentence(change) {
  const { before, after } = change;
  switch (change.change) {
    case "added":
      return "is new";
    case "removed":
      return "is gone";
    case "renamed":
      return `was called ${shown(before)}`;
    case "retyped":
      return `was ${shown(before)}, is ${shown(after)}`;
    case "redefined":
      return "is defined otherwise";
    default:
      return "differs by what it reads";
  }
}
