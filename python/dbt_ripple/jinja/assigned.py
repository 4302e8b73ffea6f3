"""Which names a text of Jinja reads where it has not set them on every way to there."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jinja2 import nodes


def read_unset(tree: nodes.Template, names: Collection[str]) -> frozenset[str]:
    """Those of the names that are read somewhere before the text has set them for certain.

    Of jinja2's own `find_undeclared_variables` this is the exact part: that one also tells a name which
    is set in one branch, and read in that branch alone.
    """
    found: set[str] = set()
    _Walk(frozenset(names), found).body(tree.body, set())
    return frozenset(found)


class _Walk:
    """A walk in the order of evaluation; what is set is passed along, a copy into each scope."""

    def __init__(self, names: frozenset[str], found: set[str]) -> None:
        self.names = names
        self.found = found

    def body(self, body: Iterable[nodes.Node], is_set: set[str]) -> set[str]:
        for node in body:
            is_set = self.statement(node, is_set)
        return is_set

    def statement(self, node: nodes.Node, is_set: set[str]) -> set[str]:
        """Look at a statement; what is set after it."""
        match node:
            case nodes.Assign():
                self.expressions([node.node], is_set)
                return is_set | _stored(node.target)
            case nodes.AssignBlock():
                self.body(node.body, {*is_set})
                self.expressions([node.filter], is_set)
                return is_set | _stored(node.target)
            case nodes.If():
                self.expressions([node.test], is_set)
                ways = [self.body(node.body, {*is_set})]
                for other in node.elif_:
                    self.expressions([other.test], is_set)
                    ways.append(self.body(other.body, {*is_set}))
                ways.append(self.body(node.else_, {*is_set}))
                return set.intersection(*ways)
            case nodes.For():
                self.expressions([node.iter], is_set)
                inside = is_set | _stored(node.target)
                self.expressions([node.test], inside)
                self.body(node.body, inside)
                self.body(node.else_, {*is_set})
            case nodes.With():
                self.expressions(node.values, is_set)
                self.body(node.body, is_set.union(*map(_stored, node.targets)))
            case nodes.Macro():
                parameters = set().union(*map(_stored, node.args))
                self.expressions(node.defaults, parameters)
                self.body(node.body, parameters)  # it is called who knows where
                return is_set | {node.name}
            case nodes.CallBlock():
                self.expressions([node.call, *node.defaults], is_set)
                self.body(node.body, is_set.union(*map(_stored, node.args)))
            case nodes.Output() | nodes.ExprStmt():
                self.expressions([node], is_set)
            case _:
                inside = {*is_set}
                for child in node.iter_child_nodes():
                    if isinstance(child, nodes.Stmt):
                        inside = self.statement(child, inside)
                    else:
                        self.expressions([child], inside)
        return is_set

    def expressions(self, read: Iterable[nodes.Node | None], is_set: set[str]) -> None:
        for node in read:
            if node is None:
                continue
            inside = [node] if isinstance(node, nodes.Name) else node.find_all(nodes.Name)
            self.found.update(
                name.name
                for name in inside
                if name.ctx == "load" and name.name in self.names and name.name not in is_set
            )


def _stored(target: nodes.Node) -> set[str]:
    """The names that a target sets: those of a namespace's attributes are none."""
    names = [target] if isinstance(target, nodes.Name) else target.find_all(nodes.Name)
    return {name.name for name in names if name.ctx in ("store", "param")}
