"""dbt's own YAML files are read as dbt reads them, whatever YAML 1.2 says."""

from __future__ import annotations

import pytest

from dbt_ripple.artifacts.read_yaml import parse_yaml
from dbt_ripple.errors import RippleError

yaml = pytest.importorskip("yaml")

TEXTS = {
    "a key twice": "vars: {a: 1}\nname: shop\nvars: {b: 2}\n",
    "a nested key twice": "models:\n  shop: {+tags: x}\n  shop: {+tags: y}\n",
    "anchors": "one: &x {a: 1, b: 2}\ntwo: {<<: *x, b: 3}\n",
    "two merged": "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n",
    "words for booleans": "a: yes\nb: Off\nc: on\nd: n\ne: 'no'\n",
    "numbers": "a: 012\nb: 0x1F\nc: 1_000\nd: 1:30\ne: 1e3\nf: 1.0e+3\ng: .inf\n",
    "dates": "a: 2026-11-27\nb: 2026-11-27 10:00:00\nc: '2026-11-27'\n",
    "nothing": "a: ~\nb: null\nc:\n",
    "tabs between": "a:\t1\nb: [1,\t2]\n",
    "a BOM": "\ufeffname: shop\nversion: '1'\n",
    "CRLF": "name: shop\r\nvars:\r\n  a: |\r\n    x\r\n    y\r\n",
    "a folded text": "a: >\n  one\n  two\n\n  three\n",
}


@pytest.mark.parametrize("what", TEXTS)
def test_it_says_what_it_says_to_dbt(what: str) -> None:
    text = TEXTS[what]
    assert parse_yaml(text, "dbt_project.yml", as_dbt=True) == yaml.load(
        text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )


def test_a_file_of_ours_with_a_key_twice_is_refused() -> None:
    with pytest.raises(RippleError, match="duplicate key"):
        parse_yaml(TEXTS["a key twice"], "ripple.yml")
