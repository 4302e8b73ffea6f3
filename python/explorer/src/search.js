// Search as one types: nodes, columns, owners and tags whose names hold every word.

export const SHOWN = 40;

export class Search {
  constructor(project) {
    this.project = project;
    this.names = project.nodes.map((node) => lower(node.name));
    this.more = project.nodes.map((node) =>
      lower([node.label, node.relation, node.unique_id].filter(Boolean).join("\n")),
    );
    // Column names repeat from node to node: each is read once.
    this.lowered = [];
    this.owners = grouped(project.nodes, (node) => (node.owner ? [node.owner] : []));
    this.tags = grouped(project.nodes, (node) => node.tags ?? []);
  }

  /**
   * What holds every word of the query, best first.
   *
   * `accepts` says of a node whether the filters leave it in. Of each kind `all` is the number found,
   * and `best` the first of them.
   */
  find(query, accepts) {
    const words = lower(query).split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    const nodes = new Best();
    const columns = new Best();
    this.names.forEach((name, index) => {
      if (!accepts(index)) return;
      const score = matched(words, name);
      if (score !== null) nodes.add(score, index);
      else if (words.every((word) => name.includes(word) || this.more[index].includes(word))) {
        nodes.add(3, index);
      }
    });
    const { project } = this;
    const ofName = new Map();
    // In orders.amount the part before the last dot is of a node, the part behind it of a column.
    const [owner, own] = split(words);
    for (let v = 0; v < project.columnCount; v++) {
      const text = project.columns.name[v];
      let score = ofName.get(text);
      if (score === undefined) {
        const name = (this.lowered[text] ??= lower(project.texts[text]));
        const whole = matched(words, name);
        score = { whole, some: own === null ? null : matched([own], name), any: name };
        score.hits = words.filter((word) => name.includes(word)).length;
        ofName.set(text, score);
      }
      if (score.whole === null && score.some === null && !(words.length > 1 && score.hits)) continue;
      const node = project.nodeOfColumn[v];
      if (!accepts(node)) continue;
      if (score.whole !== null) columns.add(score.whole, v);
      else if (score.some !== null && owner.every((word) => this.names[node].includes(word))) {
        columns.add(score.some, v);
      } else if (
        words.length > 1 &&
        words.every((word) => score.any.includes(word) || this.names[node].includes(word))
      ) {
        columns.add(3, v);
      }
    }
    return {
      nodes: nodes.result((i) => project.nodes[i].name),
      columns: columns.result((v) => project.columnName(v)),
      owners: named(this.owners, words, accepts),
      tags: named(this.tags, words, accepts),
    };
  }
}

function split(words) {
  if (words.length !== 1 || !words[0].includes(".")) return [[], null];
  const at = words[0].lastIndexOf(".");
  return [words[0].slice(0, at).split(".").filter(Boolean).slice(-1), words[0].slice(at + 1)];
}

function lower(text) {
  return text.toLowerCase();
}

/** How well the words match a name: 0 it is the name, 1 it begins so, 2 a part of it does, 3 it holds them. */
function matched(words, name) {
  let worst = -1;
  for (const word of words) {
    const at = name.indexOf(word);
    if (at < 0) return null;
    let score = 3;
    if (name === word) score = 0;
    else if (at === 0) score = 1;
    else if (!/[\p{L}\p{N}]/u.test(name[at - 1])) score = 2;
    worst = Math.max(worst, score);
  }
  return worst;
}

class Best {
  constructor() {
    this.all = 0;
    this.byScore = [[], [], [], []];
  }

  add(score, item) {
    this.all++;
    this.byScore[score].push(item);
  }

  result(name) {
    const best = [];
    for (const items of this.byScore) {
      // Short names first; what is cut off anyway is not sorted.
      const sorted = items.slice(0, 2000).map((item) => [name(item), item]);
      sorted.sort(([a], [b]) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0));
      best.push(...sorted.slice(0, SHOWN - best.length).map(([, item]) => item));
      if (best.length >= SHOWN) break;
    }
    return { all: this.all, best };
  }
}

function grouped(nodes, keys) {
  const found = new Map();
  for (const node of nodes) {
    for (const key of keys(node)) found.set(key, [...(found.get(key) ?? []), node.index]);
  }
  return found;
}

function named(groups, words, accepts) {
  const best = new Best();
  for (const [name, nodes] of groups) {
    const score = matched(words, lower(name));
    if (score !== null && nodes.some(accepts)) best.add(score, { name, nodes });
  }
  return best.result(({ name }) => name);
}
