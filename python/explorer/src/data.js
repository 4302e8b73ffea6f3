// The packed document (dbt_ripple/pages/explorer.py), unpacked: nodes, columns, links.
//
// A vertex is a column, or the set of rows of a node: columns are numbered from 0 through all nodes,
// and the rows of node n are vertex columnCount + n.

export const VALUE = 1;
export const DECIDES = 2;
export const OF_ROWS = 3;
export const MAY_READ = 4; // added to the three
export const ROWS = "*rows*";

/** Fields whose numbers are numbers; those of all others are places in the table of texts. */
const PLAIN = new Set([
  "tags",
  "certified",
  "canonical",
  "contract_enforced",
  "contract_versions",
  "pii",
  "last_run",
  "freshness",
  "path_is_complete",
  "blast_radius",
  "is_slo",
  "failures",
]);

/** The JSON in base64 of gzip. */
export async function unpack(text) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old for it (Chrome 103, Firefox 113 and Safari 16.4 do)");
  }
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

export class Project {
  constructor(raw) {
    const { texts, starts } = raw;
    const records = (fields, rows) =>
      rows.map((row, index) => {
        const record = { index };
        fields.forEach((field, i) => {
          const value = row[i];
          record[field] =
            typeof value === "number" && !PLAIN.has(field) ? texts[value] : (value ?? null);
        });
        return record;
      });
    Object.assign(this, raw.project);
    this.texts = texts;
    this.nodes = records(raw.node_fields, raw.nodes);
    this.tests = records(raw.test_fields, raw.tests);
    this.parents = raw.parents;
    this.children = this.nodes.map(() => []);
    raw.parents.forEach((parents, child) => parents.forEach((p) => this.children[p].push(child)));
    this.nodeTests = raw.node_tests;
    this.starts = starts;
    this.columns = raw.columns;
    this.columnCount = raw.columns.name.length;
    this.vertexCount = this.columnCount + this.nodes.length;
    this.kinds = raw.kinds;
    this.links = raw.links;
    this.nodeOfColumn = new Int32Array(this.columnCount);
    for (let n = 0; n < this.nodes.length; n++) this.nodeOfColumn.fill(n, starts[n], starts[n + 1]);
    this.byId = new Map(this.nodes.map((node) => [node.unique_id, node.index]));
    this.into = adjacency(raw.links.child, this.vertexCount);
    this.outOf = adjacency(raw.links.parent, this.vertexCount);
    this.compare = raw.compare && this.#compared(raw.compare);
  }

  #compared(raw) {
    const states = new Map();
    for (const state of raw.states) {
      const node = this.byId.get(state.unique_id);
      const difference = state.difference ?? { columns: [], rows: null };
      const columns = new Map();
      for (const column of difference.columns) {
        const vertex = this.vertexOf(node, column.name);
        if (vertex !== undefined) columns.set(vertex, column);
      }
      if (difference.rows) columns.set(this.rowsOf(node), difference.rows);
      states.set(node, { ...state, columns });
    }
    return { ...raw, states };
  }

  state(node) {
    return this.compare?.states.get(node);
  }

  /** How many nodes are on the longest way to each node from one that reads nothing. */
  depths() {
    if (this.depthOf) return this.depthOf;
    this.depthOf = new Int32Array(this.nodes.length);
    const waiting = this.parents.map((parents) => parents.length);
    // What reads itself over others never gets ready: it stays where it is.
    const ready = this.nodes.map((node) => node.index).filter((node) => !waiting[node]);
    for (const node of ready) {
      for (const child of this.children[node]) {
        this.depthOf[child] = Math.max(this.depthOf[child], this.depthOf[node] + 1);
        if (--waiting[child] === 0) ready.push(child);
      }
    }
    return this.depthOf;
  }

  nodeOf(vertex) {
    return vertex < this.columnCount ? this.nodeOfColumn[vertex] : vertex - this.columnCount;
  }

  rowsOf(node) {
    return this.columnCount + node;
  }

  isRows(vertex) {
    return vertex >= this.columnCount;
  }

  /** The columns of a node, in its order. */
  columnsOf(node) {
    const from = this.starts[node];
    return Array.from({ length: this.starts[node + 1] - from }, (_, i) => from + i);
  }

  columnName(vertex) {
    return this.isRows(vertex) ? ROWS : this.texts[this.columns.name[vertex]];
  }

  vertexOf(node, column) {
    if (column === ROWS) return this.rowsOf(node);
    for (let v = this.starts[node]; v < this.starts[node + 1]; v++) {
      if (this.columnName(v) === column) return v;
    }
    return undefined;
  }

  /** What is known of a column; of rows nothing but that they are rows. */
  column(vertex) {
    if (this.isRows(vertex)) return { name: ROWS, rows: true, isFollowed: true, tests: [], pii: null, blast: 0 };
    const { texts, columns } = this;
    const pii = columns.pii[vertex];
    return {
      name: this.columnName(vertex),
      type: texts[columns.type[vertex]],
      description: texts[columns.description[vertex]],
      expression: texts[columns.expression[vertex]],
      pii: pii
        ? { kind: texts[pii[0]], origin: texts[pii[1]], reason: texts[pii[2]], path: texts[pii[3]] }
        : null,
      isFollowed: Boolean(columns.followed[vertex]),
      tests: columns.tests[vertex] || [],
      blast: columns.blast[vertex],
    };
  }

  /** Whether it, or a column of it, holds personal data, declared or inherited. */
  holdsPersonalData(node) {
    const { pii } = this.columns;
    return (
      Boolean(this.nodes[node].pii) ||
      this.columnsOf(node).some((v) => pii[v] && this.texts[pii[v][1]] !== "declassified")
    );
  }

  linksInto(vertex) {
    return this.into.of(vertex);
  }

  linksOutOf(vertex) {
    return this.outOf.of(vertex);
  }

  /** In OpenLineage's words: INDIRECT FILTER, DIRECT AGGREGATION (masking). */
  kindsOf(link) {
    const said = this.kinds[this.links.kinds[link]].map(
      ([type, subtype, masking]) => `${type} ${subtype}${masking ? " (masking)" : ""}`,
    );
    return this.links.class[link] > MAY_READ ? ["may read", ...said] : said;
  }
}

/** Which links touch a vertex, in the order of the links: two arrays, whatever the number of vertices. */
function adjacency(ends, vertices) {
  const starts = new Int32Array(vertices + 1);
  for (const end of ends) starts[end + 1]++;
  for (let i = 0; i < vertices; i++) starts[i + 1] += starts[i];
  const links = new Int32Array(ends.length);
  const next = starts.slice();
  ends.forEach((end, link) => {
    links[next[end]++] = link;
  });
  return { of: (vertex) => links.subarray(starts[vertex], starts[vertex + 1]) };
}
