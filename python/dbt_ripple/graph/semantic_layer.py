"""What semantic models, metrics and saved queries read, followed as queries are.

A semantic model is taken as a relation over its model, whose columns are its entities, dimensions and
measures, each an expression in SQL; a metric as a relation with one column, its value; a saved query
as one with the metrics and the dimensions it asks for. So each has fingerprints that differ where what
it says can differ, and depends on columns as a model does:

* a measure on the columns of its expression (AGGREGATION), an entity or a dimension on those of its own;
* a metric on its measures (AGGREGATION) or its input metrics; its rows on those of the semantic model
  (GROUP_BY), on the time it is told by (GROUP_BY), on what its filters ask (FILTER), and on the
  entities and the rows that these are joined by (JOIN);
* a saved query on its metrics and group-bys, and its rows on what its filters ask.

What cannot be read is *opaque*: it may read everything it could, and says why. What asks for something
that is not there is *broken*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dbt_ripple.artifacts import Node, Project
from dbt_ripple.flow.fingerprint import digest
from dbt_ripple.flow.identifiers import fold
from dbt_ripple.flow.ir import (
    AGGREGATION,
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    TRANSFORMATION,
)
from dbt_ripple.flow.relation import Deps, Relation, merge, through
from dbt_ripple.graph.lineage import Analysis, NodeAnalysis, Status
from dbt_ripple.graph.lineage_tables import ROWS
from dbt_ripple.graph.relations import RELATIONS, LinkedNode, unchanged_relation
from dbt_ripple.graph.semantic_models import (
    NO_RELATION,
    MetricQuery,
    QueryLowerer,
    SemanticExpressions,
    SemanticModel,
    Value,
    alone,
    element_value,
    make_measure,
    measures_of,
    metrics_of,
    semantic_model,
    state_of,
    text_of,
)
from dbt_ripple.graph.semantic_references import (
    SEMANTIC,
    SemanticReference,
    asked,
    defined,
    filter_sql,
    filters_of,
    laid_out_on_time,
    placeholder,
    settings,
)
from dbt_ripple.graph.unresolved_names import reads_stored
from dbt_ripple.reasons import Code, Reason

_GRAINS: Final = frozenset(
    "nanosecond microsecond millisecond second minute hour day week month quarter year".split()
)
_OF_ODD_SHAPES: Final = (AttributeError, KeyError, TypeError, ValueError)
_OLD_TIME_SPINE: Final = ("metricflow_time_spine", "date_day")


class SemanticLayer:
    """The semantic layer of a project, linked over its relations.

    Args:
        project: its artifacts.
        dialect: of its SQL.
        queries: lowers what expressions are made into.
        relation_of: the relation behind a unique_id.
        surely: that relation as far as its columns are certain; it is asked for only of names that
            cannot be found.
    """

    def __init__(
        self,
        project: Project,
        dialect: str,
        queries: QueryLowerer,
        relation_of: Callable[[str], Relation],
        surely: Callable[[str], Relation],
    ) -> None:
        self.project = project
        self.dialect = dialect
        self.expressions = SemanticExpressions(dialect, queries)
        self.relation_of = relation_of
        self.surely = surely
        self.models: dict[str, SemanticModel] = {}
        self.metrics: dict[str, MetricQuery] = {}
        self.linked_nodes: dict[str, LinkedNode] = {}
        self.by_name: dict[tuple[str, str], list[str]] = {}
        self.measures: dict[str, list[str]] = {}
        self.in_progress: set[str] = set()

    def link(self) -> dict[str, LinkedNode]:
        """Every semantic model, metric and saved query, each after what it reads."""
        nodes = sorted(self.project.of_type(*SEMANTIC), key=lambda node: node.unique_id)
        for node in nodes:
            self.by_name.setdefault((node.resource_type, node.name), []).append(node.unique_id)
        of_kind = {kind: [n for n in nodes if n.resource_type == kind] for kind in SEMANTIC}
        for node in of_kind["semantic_model"]:
            self.semantic_model(node)
        for node in of_kind["metric"]:
            self.metric(node.unique_id)
        for node in of_kind["saved_query"]:
            self.saved_query(node)
        return self.linked_nodes

    # -- semantic models --------------------------------------------------------------------------

    def semantic_model(self, node: Node) -> None:
        """A semantic model over its model's columns."""
        unique_id = node.unique_id
        parents = [
            p
            for p in self.project.parents.get(unique_id, ())
            if self.project.nodes[p].resource_type in RELATIONS
        ]
        over = alone(self.relation_of(parents[0])) if parents else NO_RELATION
        stored = reads_stored(self.project, unique_id)

        def surely() -> Relation:
            return alone(self.surely(parents[0])) if parents else NO_RELATION

        model = self.models[unique_id] = semantic_model(
            self.expressions, node, over, surely, stored
        )
        for element in model.elements.values():
            if element.kind == "measure":
                self.measures.setdefault(element.name, []).append(unique_id)
        status, reason = state_of(model, bool(parents))
        self.keep(
            node,
            status,
            reason,
            {e.name: (e.value.fp, e.value.deps, e.text) for e in model.elements.values()},
            over.rows.fp,
            dict(over.rows.deps),
        )

    # -- metrics ----------------------------------------------------------------------------------

    def metric(self, unique_id: str) -> MetricQuery | None:
        """A metric, its inputs first; None where it is made of itself."""
        metric = self.metrics.get(unique_id)
        if metric is not None or unique_id in self.in_progress:
            return metric
        self.in_progress.add(unique_id)
        node = self.project.nodes[unique_id]
        try:
            reading = self.metric_as_read(node)
        except _OF_ODD_SHAPES as error:
            reading = self.of_odd_shape(node, error)
            fp = digest(b"metric", reading.rows_fp())
            reading.columns[node.name] = fp, {}, node.name
        self.in_progress.discard(unique_id)
        self.metrics[unique_id] = reading
        self.keep_reading(node, reading)
        return reading

    def of_odd_shape(self, node: Node, error: Exception) -> MetricQuery:
        """A metric or a saved query that no version of dbt writes so: it may read anything."""
        reading = MetricQuery()
        reason = Code.PART_UNREAD(part=f"its shape, which is not known ({error})")
        self.anything(reading, reason, defined(node))
        return reading

    def metric_as_read(self, node: Node) -> MetricQuery:
        """A metric, as its parameters say it."""
        params = node.type_params
        reading = MetricQuery()
        fps: list[bytes] = [(node.type or "").encode(), settings(params).encode()]
        deps: Deps = {}
        texts: list[str] = []
        for role, definition in measures_of(params):
            fp, of, text = self.input_measure(reading, node, definition)
            fps.append(digest(role.encode(), fp))
            merge(deps, of)
            texts.append(text)
        if isinstance(own := params.get("metric_aggregation_params"), dict):
            fp, of, text = self.aggregation(reading, node, own)
            fps.append(fp)
            merge(deps, of)
            texts.append(text)
        inputs = [
            (role, definition, *self.input_metric(reading, node, definition))
            for role, definition in metrics_of(params)
        ]
        expression = params.get("expr")
        if inputs and expression is not None and node.type == "derived":
            value = self.derived(reading, str(expression), inputs)
            fps.append(value.fp)
            merge(deps, value.deps)
            texts = [str(expression)]
        else:
            for role, _, fp, of, text in inputs:
                fps.append(digest(role.encode(), fp))
                merge(deps, through(IDENTITY if len(inputs) == 1 else TRANSFORMATION, of))
                texts.append(text)
        if not texts:  # of a type that is not known
            made_of = Code.PART_UNREAD(part="what it is made of")
            self.anything(reading, made_of, settings(params))
        self.conversion(reading, params.get("conversion_type_params"))
        self.filters(reading, f"the filter of {node.name}", node.filter)
        if node.type == "cumulative" or laid_out_on_time(params):
            self.time_spines(reading)
        for vertex, fp in reading.times.items():
            reading.row(b"time", fp, {vertex: GROUP_BY})
        text = (" / " if node.type in ("ratio", "conversion") else ", ").join(texts)
        if filters := filters_of(node.filter):
            text += " where " + " and ".join(" ".join(f.split()) for f in filters)
        rows_fp = reading.rows_fp()
        reading.columns[node.name] = digest(b"metric", *fps, rows_fp), deps, text
        return reading

    def input_measure(
        self, reading: MetricQuery, node: Node, definition: dict[str, Any]
    ) -> tuple[bytes, Deps, str]:
        """A measure as a metric takes it, with its own filter."""
        name = str(definition.get("name"))
        model = self.models.get(self.one_of(node, self.measures.get(name, ())) or "")
        if model is None:
            reading.missing[f"measure {name}"] = None
            return digest(b"broken", name.encode()), {}, name
        self.rows_of(reading, model)
        declared = next((m for m in model.node.measures if m.get("name") == name), {})
        self.time_of(reading, model, declared.get("agg_time_dimension"))
        self.filters(reading, f"the filter of measure {name}", definition.get("filter"))
        fp = digest(model.elements[name].value.fp, settings(definition).encode())
        return fp, {(model.node.unique_id, name): AGGREGATION}, name

    def aggregation(
        self, reading: MetricQuery, node: Node, definition: dict[str, Any]
    ) -> tuple[bytes, Deps, str]:
        """A metric that aggregates an expression of its own, without a measure."""
        name = str(definition.get("semantic_model"))
        model = self.models.get(
            self.one_of(node, self.by_name.get(("semantic_model", name), ())) or ""
        )
        parents = self.project.parents.get(model.node.unique_id, ()) if model else ()
        relations = [p for p in parents if self.project.nodes[p].resource_type in RELATIONS]
        if model is None or not relations:
            reading.missing[f"semantic model {name}"] = None
            return digest(b"broken", name.encode()), {}, name
        self.rows_of(reading, model)
        self.time_of(reading, model, definition.get("agg_time_dimension"))
        expression = definition.get("expr")
        if expression is None:
            expression = node.type_params.get("expr")
        measure = {**definition, "name": node.name, "expr": expression}
        value = element_value(
            self.expressions,
            measure,
            alone(self.relation_of(relations[0])),
            lambda: alone(self.surely(relations[0])),
            reads_stored(self.project, model.node.unique_id),
        )
        text = make_measure(value, measure, text_of(measure))
        reading.missing.update(dict.fromkeys(value.missing))
        if value.why:
            reading.unread[_unread_expression(value.why)] = None
        return value.fp, value.deps, text

    def input_metric(
        self, reading: MetricQuery, node: Node, definition: dict[str, Any]
    ) -> tuple[bytes, Deps, str]:
        """A metric as another one takes it, with the filter and the offset that this one adds."""
        name = str(definition.get("name"))
        unique_id = self.one_of(node, self.by_name.get(("metric", name), ()))
        metric = self.metric(unique_id) if unique_id is not None else None
        if unique_id is None or metric is None:
            reading.missing[f"metric {name}"] = None
            return digest(b"broken", name.encode()), {}, name
        reading.own.update(metric.own)
        reading.times.update(metric.times)
        reading.row(b"metric", metric.rows_fp(), {(unique_id, ROWS): IDENTITY})
        self.filters(reading, f"the filter of metric {name}", definition.get("filter"))
        return (
            digest(metric.columns[name][0], settings(definition).encode()),
            {(unique_id, name): IDENTITY},
            name,
        )

    def derived(
        self,
        reading: MetricQuery,
        expression: str,
        inputs: list[tuple[str, dict[str, Any], bytes, Deps, str]],
    ) -> Value:
        """The expression of a derived metric, over its inputs."""
        over = self.expressions.relation_with(
            (str(definition.get("alias") or definition.get("name")), fp, deps)
            for _, definition, fp, deps, _ in inputs
        )
        value = self.expressions.value(expression, over, lambda: over)
        reading.missing.update(dict.fromkeys(value.missing))
        if value.why or (value.doubtful and not value.missing):
            why = value.why or Code.CANNOT_FIND(names=value.doubtful)
            reading.unread[_unread_expression(why)] = None
        return value

    def conversion(self, reading: MetricQuery, definition: Any) -> None:
        """What joins the two measures of a conversion metric."""
        if not isinstance(definition, dict):
            return
        names = [definition.get("entity")]
        for pair in definition.get("constant_properties") or ():
            names += [pair.get("base_property"), pair.get("conversion_property")]
        for name in filter(None, names):
            entities = [
                (unique_id, element)
                for unique_id in reading.own
                if (element := self.models[unique_id].elements.get(str(name))) is not None
            ]
            if not entities:
                reading.missing[str(name)] = None
            for unique_id, element in entities:
                reading.row(b"conversion", element.value.fp, {(unique_id, element.name): JOIN})

    def rows_of(self, reading: MetricQuery, model: SemanticModel) -> None:
        """The rows a metric aggregates."""
        reading.own[model.node.unique_id] = None
        reading.row(b"model", model.rows_fp, through(GROUP_BY, model.rows()))

    def time_of(self, reading: MetricQuery, model: SemanticModel, name: Any) -> None:
        """The time dimension of a measure: its own, or its semantic model's."""
        name = name or (model.node.defaults or {}).get("agg_time_dimension")
        if name is None:
            return
        element = model.elements.get(str(name))
        if element is None:
            reading.missing[f"dimension {name}"] = None
        else:
            reading.times[model.node.unique_id, element.name] = element.value.fp

    def time_spines(self, reading: MetricQuery, grain: str | None = None) -> None:
        """The days (or hours) that metrics over time are laid out on."""
        for node in sorted(self.project.of_type("model"), key=lambda node: node.unique_id):
            columns: list[Any] = []
            if isinstance(spine := node.time_spine, dict):
                columns = [spine.get("standard_granularity_column")]
                columns += [
                    custom.get("column_name") or custom.get("name")
                    for custom in spine.get("custom_granularities") or ()
                    if custom.get("name") == grain
                ]
            elif node.name == _OLD_TIME_SPINE[0]:
                columns = [_OLD_TIME_SPINE[1]]
            if not columns:
                continue
            relation = self.relation_of(node.unique_id)
            reading.row(b"spine", relation.rows.fp, {(node.unique_id, ROWS): JOIN})
            for name in filter(None, columns):
                column = relation.get(fold(str(name), False, self.dialect), str(name))
                if column is not None:
                    reading.row(b"spine", column[0], through(JOIN, column[1]))

    # -- saved queries ----------------------------------------------------------------------------

    def saved_query(self, node: Node) -> None:
        """A saved query; of one that cannot be read, all of it."""
        try:
            reading = self.saved_query_as_read(node)
        except _OF_ODD_SHAPES as error:
            reading = self.of_odd_shape(node, error)
        self.keep_reading(node, reading)

    def saved_query_as_read(self, node: Node) -> MetricQuery:
        """A saved query: the metrics, by the dimensions, where its filters hold."""
        params = node.query_params
        reading = MetricQuery()
        shown: list[tuple[str, bytes, Deps]] = []
        for name in sorted(map(str, params.get("metrics") or ())):
            fp, deps, _ = self.input_metric(reading, node, {"name": name})
            shown.append((name, fp, deps))
        for text in sorted(map(str, params.get("group_by") or ())):
            element = asked(text.strip().removeprefix("{{").removesuffix("}}"))
            if element is None:
                self.anything(reading, Code.PART_UNREAD(part=f"group_by {text}"))
                continue
            fp, deps = self.find(reading, element)
            fp = digest(fp, element.options.encode())
            reading.row(b"group by", fp, through(GROUP_BY, deps))
            shown.append((element.name, fp, {k: m for k, m in deps.items() if m == IDENTITY}))
        self.filters(reading, "its where", params.get("where"))
        limits = settings({key: params.get(key) for key in ("limit", "order_by")})
        reading.parts.append(digest(b"rest", limits.encode()))
        rows_fp = reading.rows_fp()
        for name, fp, deps in shown:
            fp = digest(b"shown", fp, rows_fp)
            if name in reading.columns:  # by another grain
                fp, deps = (
                    digest(reading.columns[name][0], fp),
                    {**reading.columns[name][1], **deps},
                )
            reading.columns[name] = fp, deps, name
        return reading

    # -- what filters and group-bys ask for -------------------------------------------------------

    def filters(self, reading: MetricQuery, whose: str, definition: Any) -> None:
        """Filters: what each asks for decides which rows there are."""
        for template in filters_of(definition):
            read = filter_sql(template)
            if read is None:
                self.anything(reading, Code.PART_UNREAD(part=whose), template)
                continue
            sql, elements = read
            columns = [self.find(reading, element) for element in elements]
            over = self.expressions.relation_with(
                (placeholder(i), digest(fp, element.options.encode()), deps)
                for i, ((fp, deps), element) in enumerate(zip(columns, elements, strict=True))
            )
            value = self.expressions.value(sql, over, None)
            if value.why or value.doubtful:
                why = value.why or Code.CANNOT_FIND(names=value.doubtful)
                reason = Code.FILTER_UNREAD_BECAUSE(part=whose, because=why)
                self.anything(reading, reason, template)
                continue
            reading.row(b"filter", value.fp, through(FILTER, value.deps))

    def anything(self, reading: MetricQuery, what: Reason, text: str = "") -> None:
        """Something that cannot be read may ask for anything that there is."""
        reading.unread[what] = None
        reading.parts.append(digest(b"unread", text.encode()))
        for model in self.models.values():
            fp, deps = model.everything()
            reading.row(b"unread", fp, through(FILTER, deps))

    def find(self, reading: MetricQuery, element: SemanticReference) -> tuple[bytes, Deps]:
        """An element that a filter or a saved query asks for, with what it is joined by."""
        for grain in self.custom_grains():
            if grain in element.options or element.name.endswith(f"__{grain}"):
                self.time_spines(reading, grain)
        if element.kind == "Metric":
            return self.find_metric(reading, element)
        parts = element.name.split("__")
        links, name = [*element.path, *parts[:-1]], parts[-1]
        models = self.candidates(links, name, reading.own)
        if not models and len(parts) > 1 and (self.is_grain(name) or parts[0] == "metric_time"):
            links, name = links[:-1], parts[-2]
            models = self.candidates(links, name, reading.own)
        if not models and name == "metric_time":
            times = sorted(reading.times.items())
            return digest(b"metric_time", *(fp for _, fp in times)), {v: IDENTITY for v, _ in times}
        if not models:
            if element.kind == "Entity" and any(m.primary == name for m in self.models.values()):
                return digest(b"entity", name.encode()), {}  # one that has no column
            kind = "entity" if element.kind == "Entity" else "dimension"
            reading.missing[f"{kind} {element.name}"] = None
            return digest(b"broken", element.name.encode()), {}
        fps: list[bytes] = []
        deps: Deps = {}
        for model in models:
            fps.append(model.elements[name].value.fp)
            merge(deps, {(model.node.unique_id, name): IDENTITY})
            if model.node.unique_id not in reading.own:
                self.joined(reading, links, model)
        return digest(b"found", *sorted(fps)), deps

    def candidates(
        self, links: list[str], name: str, own: Mapping[str, None]
    ) -> list[SemanticModel]:
        """The semantic models in which an element may be found: those that are aggregated come first."""
        there = [
            m for m in self.models.values() if (e := m.elements.get(name)) and e.kind != "measure"
        ]
        for linkable in (True, False):
            models = [m for m in there if not links or m.has_entity(links[-1], linkable)]
            own_models = [m for m in models if m.node.unique_id in own]
            if own_models and len(links) <= 1:
                return own_models
            if models:
                return models
        return []

    def joined(self, reading: MetricQuery, links: list[str], to: SemanticModel) -> None:
        """The entities by which a semantic model is joined to those that are aggregated."""
        on_the_way = [
            model
            for model in self.models.values()
            if model.node.unique_id in reading.own
            or model is to
            or sum(model.has_entity(link_, False) for link_ in links) > 1
        ]
        for model in on_the_way:
            for entity in links:
                element = model.elements.get(entity)
                if element is not None and element.kind == "entity":
                    vertex = model.node.unique_id, entity
                    reading.row(b"joined by", element.value.fp, {vertex: JOIN})
            if model.node.unique_id not in reading.own:
                reading.row(b"joined", model.rows_fp, through(JOIN, model.rows()))

    def find_metric(self, reading: MetricQuery, element: SemanticReference) -> tuple[bytes, Deps]:
        """A metric in a filter, which is told by entities."""
        own, times = dict(reading.own), dict(reading.times)
        ids = self.by_name.get(("metric", element.name), [])
        metric = self.metric(ids[0]) if ids else None
        if metric is None:
            reading.missing[f"metric {element.name}"] = None
            return digest(b"broken", element.name.encode()), {}
        by = [
            self.find(reading, SemanticReference("Entity", name, (), "")) for name in element.path
        ]
        reading.own, reading.times = own, times
        reading.row(b"metric", metric.rows_fp(), {(ids[0], ROWS): FILTER})
        for fp, deps in by:
            reading.row(b"by", fp, through(GROUP_BY, deps))
        return metric.columns[element.name][0], {(ids[0], element.name): IDENTITY}

    def is_grain(self, name: str) -> bool:
        """Whether a name is a granularity of time, or a part of a date."""
        return name in _GRAINS or name.startswith("extract_") or name in self.custom_grains()

    def custom_grains(self) -> Iterator[str]:
        """The granularities of time that the project itself defines."""
        for node in self.project.of_type("model"):
            for custom in (node.time_spine or {}).get("custom_granularities") or ():
                yield str(custom.get("name"))

    # -- the rest ---------------------------------------------------------------------------------

    def one_of(self, node: Node, unique_ids: Iterable[str]) -> str | None:
        """The one that a name means: what the node depends on, or what is of its package, comes first."""
        nodes = self.project.nodes
        return min(
            unique_ids,
            key=lambda u: (
                u not in node.depends_on.nodes,
                nodes[u].package_name != node.package_name,
                u,
            ),
            default=None,
        )

    def keep_reading(self, node: Node, reading: MetricQuery) -> None:
        """Keep a metric or a saved query that has been put together."""
        status: Status = "analysed"
        reason: Reason | None = None
        if reading.missing:
            status, reason = "broken", Code.CANNOT_FIND(names=sorted(reading.missing))
        elif reading.unread:
            parts = sorted(reading.unread, key=str)
            status, reason = "opaque", Code.CANNOT_BE_READ(parts=parts)
        self.keep(node, status, reason, reading.columns, reading.rows_fp(), reading.rows)

    def keep(
        self,
        node: Node,
        status: Status,
        reason: Reason | None,
        columns: Mapping[str, tuple[bytes, Deps, str]],
        rows_fp: bytes,
        rows: Deps,
    ) -> None:
        """Keep a node as linked."""
        unique_id = node.unique_id
        names = list(columns)
        fps = [fp for fp, *_ in columns.values()]
        analysis = NodeAnalysis(
            unique_id,
            status,
            reason,
            columns=names,
            fingerprints=[fp.hex() for fp in fps],
            expressions=[text for *_, text in columns.values()],
            rows_fingerprint=rows_fp.hex(),
        )
        relation = self.expressions.relation_with(
            (name, fp, {(unique_id, name): IDENTITY}) for name, fp in zip(names, fps, strict=True)
        )
        self.linked_nodes[unique_id] = LinkedNode(
            analysis, relation, [d for _, d, _ in columns.values()], rows
        )


def over_analysis(
    project: Project, dialect: str, queries: QueryLowerer, analysis: Analysis
) -> dict[str, NodeAnalysis]:
    """The semantic layer over relations as an analysis has them, once their fingerprints were set anew."""
    empty = NodeAnalysis("", "opaque")

    def relation_of(unique_id: str) -> Relation:
        return unchanged_relation(unique_id, analysis.nodes.get(unique_id, empty), dialect)

    layer = SemanticLayer(project, dialect, queries, relation_of, relation_of).link()
    return {
        unique_id: replace(
            analysis.nodes[unique_id],
            fingerprints=linked.analysis.fingerprints,
            rows_fingerprint=linked.analysis.rows_fingerprint,
        )
        for unique_id, linked in layer.items()
    }


def _unread_expression(why: Reason) -> Reason:
    return Code.PART_UNREAD_BECAUSE(part="its expression", because=why)
