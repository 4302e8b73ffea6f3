"""The one reader of Jinja: a text's parse tree, by the lexer and parser of Jinja itself.

dbt's own blocks (``materialization``, ``test``, ``docs``) and typed parameters of macros are read as dbt reads
them. A text that Jinja refuses has no tree: whoever asks about it has to take it for anything.
"""

from __future__ import annotations

from functools import cache, lru_cache

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.lexer import Lexer
from jinja2.parser import Parser
from jinja2.sandbox import SandboxedEnvironment


class _DbtParser(Parser):
    """Jinja's parser, with parameters that may have types: ``{% macro f(a: list[str]) %}``."""

    def parse_signature(self, node: nodes.Macro | nodes.CallBlock) -> None:
        args: list[nodes.Name] = []
        defaults: list[nodes.Expr] = []
        self.stream.expect("lparen")
        while self.stream.current.type != "rparen":
            if args:
                self.stream.expect("comma")
            arg = self.parse_assign_target(name_only=True)
            arg.set_ctx("param")
            if self.stream.skip_if("colon"):
                self._type()
            if self.stream.skip_if("assign"):
                defaults.append(self.parse_expression())
            elif defaults:
                self.fail("non-default argument follows default argument")
            args.append(arg)
        self.stream.expect("rparen")
        node.args, node.defaults = args, defaults

    def _type(self) -> None:
        self.stream.expect("name")
        if self.stream.skip_if("lbracket"):
            self._type()
            while self.stream.skip_if("comma"):
                self._type()
            self.stream.expect("rbracket")


class _Materialization(Extension):
    """``{% materialization name, adapter='x' %}``: a macro without parameters of its own."""

    tags = {"materialization"}  # noqa: RUF012  (Jinja's own attribute)

    def parse(self, parser: Parser) -> nodes.Node:
        node = nodes.Macro(lineno=next(parser.stream).lineno)
        node.name = "materialization_" + parser.parse_assign_target(name_only=True).name
        node.args, node.defaults = [], []
        while parser.stream.skip_if("comma"):
            parser.parse_assign_target(name_only=True)
            if parser.stream.skip_if("assign"):
                parser.parse_expression()
        node.body = parser.parse_statements(("name:endmaterialization",), drop_needle=True)
        return node


class _Test(Extension):
    """``{% test name(model, column_name) %}``: a macro."""

    tags = {"test", "data_test"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        begin = next(parser.stream)
        node = nodes.Macro(lineno=begin.lineno)
        node.name = "test_" + parser.parse_assign_target(name_only=True).name
        parser.parse_signature(node)
        node.body = parser.parse_statements((f"name:end{begin.value}",), drop_needle=True)
        return node


class _Docs(Extension):
    """``{% docs name %}``: text for people."""

    tags = {"docs"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        node = nodes.Macro(lineno=next(parser.stream).lineno)
        node.name = "docs_" + parser.parse_assign_target(name_only=True).name
        node.args, node.defaults = [], []
        node.body = parser.parse_statements(("name:enddocs",), drop_needle=True)
        return node


class DbtEnvironment(SandboxedEnvironment):
    """Jinja as dbt sets it up, in a sandbox."""

    def __init__(self) -> None:
        super().__init__(
            extensions=[
                "jinja2.ext.do",
                "jinja2.ext.loopcontrols",
                _Materialization,
                _Test,
                _Docs,
            ],
            cache_size=0,
        )
        self.filters |= dict.fromkeys(("as_text", "as_bool", "as_native", "as_number"), _itself)
        self.filters["is_list"] = _is_list

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _DbtParser(self, source, name, filename).parse()


def _itself(value: object) -> object:
    return value


def _is_list(value: object) -> bool:
    return isinstance(value, list)


@cache
def environment() -> DbtEnvironment:
    """The environment that all texts are read by."""
    return DbtEnvironment()


def lexer() -> Lexer:
    """The lexer of that environment."""
    return environment().lexer


@lru_cache(maxsize=4096)
def tree_of(text: str) -> nodes.Template | None:
    """The parse tree of a text; None where Jinja refuses it. It is shared: not to be changed.

    Example:
        >>> tree_of("select {{ ref('a') }}").body[0].nodes[1].node.name
        'ref'
        >>> tree_of("{% if x %}") is None
        True
    """
    try:
        return environment().parse(text)
    except (TemplateSyntaxError, RecursionError):
        return None
