// The page: search and filters, the picture, and what is known of the selection.

import { Project, unpack } from "./data.js";
import { bdi, h, replace } from "./dom.js";
import { Picture } from "./draw.js";
import { asMermaid, asPng, asSvg, save } from "./exports.js";
import { helpDialog, legendOf } from "./help.js";
import { Panels } from "./panels.js";
import { SHOWN, Search } from "./search.js";
import { DEPTHS, EDGES, FILTERS, LIMIT, STATES, acceptor, format, initial, isFiltered, parse } from "./state.js";
import { sample } from "./svg.js";
import { count, shown, shownLines } from "./text.js";
import { hidesColumns, toggled, viewOf } from "./view.js";
import { EDGE_WORDS, TYPE_WORDS, stateWord, typeWord } from "./words.js";

const FILTER_NAMES = { type: "Type", layer: "Layer", tag: "Tag", owner: "Owner" };

class Explorer {
  constructor(app, project) {
    this.app = app;
    this.project = project;
    this.search = null;
    this.panels = new Panels(project, this);
    this.state = parse(location.hash, project);
    this.#build();
    this.picture = new Picture(this.svg, project, this);
    this.#chooseTheme(this.#storedTheme());
    addEventListener("hashchange", () => this.#arrive());
    addEventListener("popstate", () => this.#arrive());
    addEventListener("resize", () => this.refresh({ fit: true }));
    addEventListener("beforeprint", () => this.view && this.picture.whole(true));
    addEventListener("afterprint", () => this.view && this.picture.whole(false));
    document.addEventListener("keydown", (event) => this.#key(event));
    this.refresh({ fit: true });
  }

  // --- what picture and panels ask for ---------------------------------------------------------------

  /** Select a node, or one of its columns or its rows. */
  select(node, vertex) {
    const column = vertex === null ? null : this.project.columnName(vertex);
    const kept = initial(this.project);
    const { way, depth, edges, type, layer, tag, owner, states } = this.state;
    this.update({ ...kept, way, depth, edges, type, layer, tag, owner, states, change: false, node, column }, { fit: true });
  }

  /** Open a group, or close it. */
  group(key) {
    this.update({ group: this.state.group === key ? null : key }, { fit: true });
  }

  grow(box, side) {
    this.update(toggled(this.state, box, side));
  }

  /** Show all columns of a box, or fewer. */
  columns(box) {
    const open = new Set(this.state.columns);
    const none = new Set(this.state.nocolumns);
    if (!box.rows.length) {
      if (!none.delete(box.node) || !box.involved?.size) open.add(box.node);
    } else if (!hidesColumns(box)) open.add(box.node);
    else {
      open.delete(box.node);
      none.add(box.node);
      if (!box.involved) none.delete(box.node);
    }
    this.update({ columns: open, nocolumns: none });
  }

  update(change, { fit = false, push = true } = {}) {
    this.state = { ...this.state, missing: null, ...change };
    const hash = `#${format(this.state, this.project)}`;
    if (hash !== (location.hash || "#")) {
      if (push) history.pushState(null, "", hash);
      else history.replaceState(null, "", hash);
    }
    this.refresh({ fit });
  }

  say(element, lines) {
    replace(
      this.hint,
      lines.map((line) =>
        line.sql !== undefined
          ? h("pre", {}, h("code", {}, bdi(clipped(shownLines(line.sql)))))
          : h("div", {}, bdi(clipped(line))),
      ),
    );
    this.hint.hidden = false;
    element.setAttribute("aria-describedby", "hint");
    this.hinted?.removeAttribute("aria-describedby");
    this.hinted = element;
    element.setAttribute("aria-describedby", "hint");
    const at = element.getBoundingClientRect();
    const own = this.hint.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left), innerWidth - own.width - 8);
    const below = at.bottom + 8 + own.height < innerHeight;
    this.hint.style.left = `${left}px`;
    this.hint.style.top = `${below ? at.bottom + 8 : Math.max(8, at.top - own.height - 8)}px`;
  }

  hush() {
    this.hint.hidden = true;
    this.hinted?.removeAttribute("aria-describedby");
  }

  // --- drawing the page --------------------------------------------------------------------------------

  #arrive() {
    if (location.hash.replace(/^#/, "") === format(this.state, this.project)) return;
    this.state = parse(location.hash, this.project);
    this.refresh({ fit: true });
  }

  refresh({ fit = false } = {}) {
    const { state, project } = this;
    this.hush();
    const held = document.activeElement?.id;
    this.view = viewOf(project, state, (view) => this.picture.canRead(view), this.picture.isNarrow);
    if (this.view && !this.view.boxes.length) this.view = null;
    const isEmpty = this.view === null;
    this.svg.classList.toggle("empty", isEmpty);
    this.empty.hidden = !isEmpty;
    if (isEmpty) this.legend.hidden = this.zoom.hidden = true;
    this.#controls();
    this.#notice();
    if (isEmpty) this.#welcome();
    else {
      // All above it stands, so that it has the room that it is fitted into.
      replace(this.legend, legendOf(this.view, project, state.change));
      this.legend.hidden = !this.legend.childElementCount;
      this.picture.draw(this.view, this.#label());
      this.zoom.hidden = this.picture.isPage();
      if (fit || !this.wasDrawn) this.picture.arrive(state.node);
    }
    this.wasDrawn = !isEmpty;
    this.#details();
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
    document.title = `${this.#title()} · ${shown(project.name)}: lineage`;
  }

  #title() {
    const { state, project } = this;
    if (state.node === null) return state.change ? "The change" : "Explorer";
    const { name } = project.nodes[state.node];
    return shown(state.column === null ? name : `${name}.${state.column}`);
  }

  #label() {
    const { view, state } = this;
    const what = state.node !== null ? `Lineage of ${this.#title()}` : state.change ? "The change" : "The project";
    return `${what}: ${count(view.boxes.length, view.mode === "groups" ? "group" : "node")}, ${count(view.edges.length, "edge")}. Arrow keys move through it.`;
  }

  #build() {
    const { project } = this;
    this.hint = h("div", { id: "hint", role: "tooltip", hidden: true });
    this.input = h("input", {
      id: "search",
      type: "search",
      role: "combobox",
      placeholder: "Search nodes, columns, owners, tags",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": "Search nodes, columns, owners and tags",
      "aria-expanded": "false",
      "aria-controls": "found",
      "aria-autocomplete": "list",
      oninput: () => this.#find(),
      onfocus: () => this.#find(),
      onkeydown: (event) => this.#inSearch(event),
    });
    this.found = h("div", { id: "found", role: "listbox", "aria-label": "Search results", hidden: true });
    this.found.addEventListener("mousedown", (event) => event.preventDefault());
    this.searched = h("p", { class: "hidden-visually", role: "status" });
    // Later, so that a click on a result still finds it; not where the input has the focus again.
    this.input.addEventListener("blur", () => setTimeout(() => {
      if (document.activeElement !== this.input) this.#closeSearch();
    }, 150));
    this.tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Picture" });
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("id", "picture");
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "Lineage");
    this.empty = h("div", { class: "welcome" });
    this.legend = h("ul", { class: "legend", "aria-label": "Legend" });
    this.notice = h("p", { class: "notice", role: "status" });
    this.details = h("aside", { id: "details", "aria-labelledby": "details-title", tabindex: 0 });
    this.filters = h("div", { class: "filters", role: "group", "aria-label": "Filters" });
    this.help = helpDialog();
    replace(
      this.app,
      h("a", { class: "skip", href: "#", onclick: (event) => {
        event.preventDefault();
        (this.svg.querySelector('[tabindex="0"]') ?? this.details).focus();
      } }, "Skip to the picture"),
      h(
        "header",
        {},
        h("h1", {}, h("button", { type: "button", class: "home", onclick: () => this.#home() }, bdi(shown(project.name)), h("span", {}, " lineage"))),
        h("div", { class: "search", role: "search" }, this.input, this.found, this.searched),
        project.compare
          ? h("button", { type: "button", id: "change", onclick: () => this.#showChange() }, "The change")
          : null,
        this.#menu("Export", "export", [
          ["SVG", () => save(asSvg(this.picture, this.#label()), "image/svg+xml", this.#title(), "svg")],
          ["PNG", async () => save(await asPng(this.picture, this.#label()), "image/png", this.#title(), "png")],
          ["Mermaid", () => save(asMermaid(project, this.view), "text/plain", this.#title(), "mmd")],
          ["Print", () => print()],
        ]),
        (this.theme = h("button", { type: "button", id: "theme", onclick: () => this.#nextTheme() })),
        h("button", { type: "button", id: "keys", "aria-haspopup": "dialog", onclick: () => this.help.showModal() }, "Keys"),
      ),
      h("main", {}, h("div", { class: "stage" }, this.filters, this.tools, this.notice, h("div", { class: "canvas" }, this.svg, this.empty), this.legend), this.details),
      this.hint,
      this.help,
    );
    this.#buildFilters();
    this.#buildTools();
  }

  #menu(label, id, entries) {
    const menu = h("details", { class: "menu", id });
    menu.append(
      h("summary", {}, label),
      h("div", { class: "entries" }, entries.map(([name, act]) => h("button", {
        type: "button",
        onclick: async () => {
          menu.open = false;
          if (!this.view) {
            this.notice.textContent = "There is no picture to export.";
            return;
          }
          try {
            await act();
          } catch (error) {
            this.notice.textContent = `${name}: ${error.message}`;
          }
        },
      }, name))),
    );
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.open) {
        menu.open = false;
        menu.firstChild.focus();
        event.stopPropagation();
      }
    });
    menu.addEventListener("focusout", (event) => {
      if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
    });
    return menu;
  }

  #buildFilters() {
    const { project } = this;
    const values = { type: new Map(), layer: new Map(), tag: new Map(), owner: new Map() };
    const add = (name, value) => values[name].set(value, (values[name].get(value) ?? 0) + 1);
    for (const node of project.nodes) {
      add("type", node.resource_type);
      add("layer", node.layer);
      for (const tag of node.tags ?? []) add("tag", tag);
      add("owner", node.owner ?? "");
    }
    this.filterBoxes = FILTERS.filter((name) => values[name].size).map((name) => {
      const summary = h("summary", {});
      const sorted = [...values[name]].sort(([a], [b]) => (a < b ? -1 : 1));
      const boxes = new Map();
      const named = (value) => {
        if (name === "type") return TYPE_WORDS[value] ?? value;
        return name === "owner" && value === "" ? "nobody" : value;
      };
      const entry = ([value, number]) => {
        const input = h("input", {
          type: "checkbox",
          onchange: () => {
            const chosen = new Set(this.state[name]);
            if (input.checked) chosen.add(value);
            else chosen.delete(value);
            this.update({ [name]: chosen });
          },
        });
        boxes.set(value, input);
        const label = h("label", {}, input, bdi(shown(named(value))), h("span", { class: "aside" }, ` ${number.toLocaleString("en")}`));
        label.dataset.text = named(value).toLowerCase();
        return label;
      };
      const fieldset = h("fieldset", {}, h("legend", { class: "hidden-visually" }, FILTER_NAMES[name]));
      // What is in a filter is made when it is first opened: there may be thousands of owners.
      const fill = () => {
        if (boxes.size) return;
        if (sorted.length > 12) {
          const narrow = h("input", { type: "search", placeholder: "Narrow the list", "aria-label": `Narrow the list of ${FILTER_NAMES[name].toLowerCase()}s`, oninput: () => {
            const part = narrow.value.toLowerCase();
            for (const label of fieldset.querySelectorAll("label")) label.hidden = !label.dataset.text.includes(part);
          } });
          fieldset.append(narrow);
        }
        fieldset.append(...sorted.map(entry));
        for (const [value, input] of boxes) input.checked = this.state[name].has(value);
      };
      const details = h("details", { class: "menu filter", ontoggle: () => details.open && fill() }, summary, fieldset);
      details.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && details.open) {
          details.open = false;
          summary.focus();
          event.stopPropagation();
        }
      });
      details.addEventListener("focusout", (event) => {
        if (event.relatedTarget && !details.contains(event.relatedTarget)) details.open = false;
      });
      return { name, details, summary, boxes };
    });
    this.clear = h("button", { type: "button", class: "link", onclick: () => this.update(Object.fromEntries(FILTERS.map((name) => [name, new Set()]))) }, "Clear filters");
    replace(this.filters, this.filterBoxes.map(({ details }) => details), this.clear);
  }

  #buildTools() {
    const radios = (name, legend, entries, key) => {
      const inputs = entries.map(([value, label]) => {
        const input = h("input", { type: "radio", name, id: `${name}-${value}`, onchange: () => this.update({ [key]: value }, { fit: true }) });
        return { value, input, label: h("label", { for: `${name}-${value}` }, input, h("span", {}, label)) };
      });
      return { element: h("fieldset", { class: "choice" }, h("legend", {}, legend), inputs.map(({ label }) => label)), inputs };
    };
    this.way = radios("direction", "Direction", [["upstream", "Upstream"], ["both", "Both"], ["downstream", "Downstream"]], "way");
    this.depth = h(
      "select",
      { id: "depth", onchange: () => this.update({ depth: this.depth.value === "all" ? Infinity : Number(this.depth.value) }, { fit: true }) },
    );
    this.edgeBoxes = new Map(EDGES.map((name) => {
      const input = h("input", { type: "checkbox", id: `edges-${name}`, onchange: () => {
        const edges = new Set(EDGES.filter((one) => (one === name ? input.checked : this.state.edges.has(one))));
        this.update({ edges });
      } });
      return [name, input];
    }));
    const short = { value: "Value", decides: "Decides", rows: "Rows", may: "May read" };
    this.edgeChoice = h("fieldset", { class: "choice" }, h("legend", {}, "Edges"), EDGES.map((name) => h("label", { title: EDGE_WORDS[name] }, this.edgeBoxes.get(name), sample(name), h("span", {}, short[name]))));
    this.stateBoxes = new Map(STATES.map((name) => [name, h("input", { type: "checkbox", id: `states-${name}`, onchange: () => {
      const states = new Set(STATES.filter((one) => this.stateBoxes.get(one).checked));
      this.update({ states }, { fit: true });
    } })]));
    const counts = this.project.compare?.counts ?? {};
    this.stateChoice = h("fieldset", { class: "choice" }, h("legend", {}, "The change"), STATES.filter((name) => counts[name]).map((name) => h("label", {}, this.stateBoxes.get(name), h("span", { class: `badge state-${name}` }, `${stateWord(name)} ${counts[name]}`))));
    const tool = (label, text, act) => h("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.around = h("div", { class: "choices" }, this.way.element, h("label", { class: "choice" }, "Steps ", this.depth));
    replace(
      this.tools,
      this.around,
      this.edgeChoice,
      this.stateChoice,
    );
    this.zoom = h("div", { class: "zoom" },
        tool("Everything into sight", "Fit", () => this.picture.fit()),
        tool("Larger", "+", () => this.picture.scaleBy(1.25)),
        tool("Smaller", "−", () => this.picture.scaleBy(0.8)),
        tool("Fold all columns, and hide what was unfolded", "Reset", () => this.update({ columns: new Set(), nocolumns: new Set(), up: new Set(), down: new Set(), noup: new Set(), nodown: new Set(), limit: LIMIT }, { fit: true })));
    this.filters.append(this.zoom);
  }

  /** The controls as the state has them. */
  #controls() {
    const { state } = this;
    for (const { name, summary, boxes } of this.filterBoxes) {
      const chosen = state[name];
      replace(summary, FILTER_NAMES[name], chosen.size ? h("span", { class: "badge plain" }, chosen.size === 1 ? bdi(shown([...chosen][0] || "nobody")) : String(chosen.size)) : null);
      for (const [value, input] of boxes) input.checked = chosen.has(value);
    }
    this.clear.hidden = !isFiltered(state);
    for (const { value, input } of this.way.inputs) input.checked = state.way === value;
    const depths = [...new Set([0, ...DEPTHS, state.depth])].filter((n) => n !== Infinity && (n || state.depth === 0)).sort((a, b) => a - b);
    replace(this.depth, depths.map((n) => h("option", { value: String(n) }, String(n))), h("option", { value: "all" }, "all"));
    this.depth.value = state.depth === Infinity ? "all" : String(state.depth);
    for (const [name, input] of this.edgeBoxes) input.checked = state.edges.has(name);
    for (const [name, input] of this.stateBoxes) input.checked = state.states.has(name);
    const mode = this.view?.mode ?? "groups";
    this.around.hidden = state.node === null;
    this.edgeChoice.hidden = mode === "groups" || (mode === "node" && !this.view.boxes.some((box) => box.rows.length));
    this.stateChoice.hidden = !(state.change && this.project.compare);
    this.tools.hidden = this.around.hidden && this.edgeChoice.hidden && this.stateChoice.hidden;
    const change = document.getElementById("change");
    change?.setAttribute("aria-pressed", String(state.change && state.node === null));
  }

  #notice() {
    const { state, view } = this;
    const said = [];
    if (state.missing !== null) said.push(`There is no ${clipped(shown(state.missing))} in this page.`);
    if (view?.filtered) said.push(`${count(view.filtered, "node")} hidden by the filters; what leads through them is dotted.`);
    replace(this.notice, bdi(said.join(" ")));
    if (view?.beyond) {
      this.notice.append(
        ` The nearest ${count(view.boxes.length, "node")} are drawn, ${view.beyond.toLocaleString("en")} are not: take fewer steps, or filter. `,
        h("button", { type: "button", class: "link", onclick: () => this.update({ limit: state.limit * 2 }) }, `Draw ${Math.min(view.beyond, state.limit).toLocaleString("en")} more`),
      );
    }
    this.notice.hidden = !this.notice.textContent;
  }

  #details() {
    const { state, panels, project } = this;
    const group = state.node === null && state.group !== null && this.view?.boxes.find(({ key }) => key === state.group);
    if (group) replace(this.details, panels.group(group));
    else if (state.node === null) replace(this.details, panels.overview(state));
    else if (state.column === null) {
      replace(this.details, panels.node(state.node, this.view.boxes.find((box) => box.node === state.node)));
    } else replace(this.details, panels.column(project.vertexOf(state.node, state.column)));
    this.details.scrollTop = 0;
  }

  #welcome() {
    const { project, state } = this;
    if (state.change && project.compare) {
      const none = project.compare.states.size === 0;
      replace(
        this.empty,
        h("h2", {}, none ? "Nothing differs" : "Nothing of the change is left in"),
        h("p", {}, none ? "Every column and all rows are defined as they are on base." : "Filters and the kinds of change above leave nothing to draw."),
      );
      return;
    }
    replace(this.empty, h("h2", {}, "Nothing is left in the filters"), h("p", {}, "Clear them, or choose others."));
  }

  // --- search --------------------------------------------------------------------------------------------

  #find() {
    const query = this.input.value;
    this.search ??= new Search(this.project);
    const result = this.search.find(query, acceptor(this.state, this.project));
    if (result === null) {
      this.#closeSearch();
      return;
    }
    const { project } = this;
    const options = [];
    const option = (act, ...content) => {
      const element = h("div", { role: "option", id: `option-${options.length}`, "aria-selected": "false" }, content);
      element.addEventListener("click", () => {
        act();
        this.#closeSearch();
        this.input.value = "";
      });
      options.push({ element, act });
      return element;
    };
    const group = (title, { all, best }, entry) =>
      all
        ? h("div", { role: "group", "aria-label": title }, h("div", { class: "group", role: "presentation" }, `${title} (${all.toLocaleString("en")}${all > SHOWN ? `, ${SHOWN} shown` : ""})`), best.map(entry))
        : null;
    const filterBy = (name) => ({ name: value, nodes }) =>
      option(() => this.update({ [name]: new Set([...this.state[name], value]) }), bdi(shown(value)), h("span", { class: "aside" }, ` filter by ${name} · ${count(nodes.length, "node")}`));
    replace(
      this.found,
      group("Nodes", result.nodes, (index) => {
        const node = project.nodes[index];
        const state = project.state(index);
        return option(() => this.select(index, null), bdi(clipped(shown(node.name))), h("span", { class: "aside" }, ` ${typeWord(node)} · `, bdi(shown(node.layer))), state ? [" ", h("span", { class: `badge state-${state.state}` }, stateWord(state.state))] : null);
      }),
      group("Columns", result.columns, (vertex) => {
        const node = project.nodes[project.nodeOf(vertex)];
        return option(() => this.select(node.index, vertex), bdi(clipped(shown(project.columnName(vertex)))), h("span", { class: "aside" }, ` ${typeWord(node)} `, bdi(clipped(shown(node.name)))));
      }),
      group("Owners", result.owners, filterBy("owner")),
      group("Tags", result.tags, filterBy("tag")),
      options.length ? null : h("p", {}, "Nothing has this in its name", isFiltered(this.state) ? " within the filters." : "."),
    );
    this.options = options;
    this.found.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.searched.textContent = count(result.nodes.all + result.columns.all + result.owners.all + result.tags.all, "result");
    this.#mark(options.length ? 0 : -1);
  }

  #mark(at) {
    this.marked = at;
    this.options.forEach(({ element }, i) => element.setAttribute("aria-selected", String(i === at)));
    if (at < 0) this.input.removeAttribute("aria-activedescendant");
    else {
      this.input.setAttribute("aria-activedescendant", `option-${at}`);
      this.options[at].element.scrollIntoView({ block: "nearest" });
    }
  }

  #inSearch(event) {
    const open = !this.found.hidden && this.options?.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (open) {
        const by = event.key === "ArrowDown" ? 1 : -1;
        this.#mark((this.marked + by + this.options.length) % this.options.length);
      } else this.#find();
    } else if (event.key === "Enter" && open) {
      event.preventDefault();
      this.options[this.marked].element.click();
      (this.svg.querySelector('[tabindex="0"]') ?? this.input).focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (this.found.hidden) this.input.value = "";
      this.#closeSearch();
    }
  }

  #closeSearch() {
    this.found.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  // --- the whole page ------------------------------------------------------------------------------------

  #home() {
    this.update({ ...initial(this.project), change: false }, { fit: true });
  }

  #showChange() {
    const { type, layer, tag, owner, states } = this.state;
    this.update({ ...initial(this.project), type, layer, tag, owner, states }, { fit: true });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, select, textarea, dialog");
    if (event.key === "Escape" && !typing) {
      this.hush();
      if (this.state.group !== null) this.group(this.state.group);
      else if (this.state.node !== null && this.state.column !== null) this.select(this.state.node, null);
      else if (this.state.node !== null) this.project.compare ? this.#showChange() : this.#home();
    }
    if (typing) return;
    if (event.key === "/") {
      event.preventDefault();
      this.input.focus();
      this.input.select();
    } else if (event.key === "?") {
      event.preventDefault();
      this.help.showModal();
    }
  }

  #storedTheme() {
    try {
      return localStorage.getItem("dbt-ripple-theme") ?? "system";
    } catch {
      return "system"; // no storage on this address
    }
  }

  #nextTheme() {
    const order = ["system", "light", "dark"];
    const next = order[(order.indexOf(this.themeName) + 1) % order.length];
    try {
      localStorage.setItem("dbt-ripple-theme", next);
    } catch {
      // It holds until the page is closed.
    }
    this.#chooseTheme(next);
  }

  #chooseTheme(name) {
    this.themeName = ["light", "dark"].includes(name) ? name : "system";
    if (this.themeName === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.themeName;
    this.theme.textContent = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[this.themeName];
  }
}

function clipped(text, most = 700) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

async function start() {
  const app = document.getElementById("app");
  const data = document.getElementById("data");
  try {
    const started = performance.now();
    const raw = await unpack(data.textContent);
    data.remove();
    const explorer = new Explorer(app, new Project(raw));
    performance.measure("dbt-ripple: open", { start: started, end: performance.now() });
    app.dataset.ready = "true";
    return explorer;
  } catch (error) {
    replace(app, h("p", { class: "warning", role: "alert" }, `This page could not be opened: ${error.message}`));
    throw error;
  }
}

start();
