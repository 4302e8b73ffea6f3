"""`dbt-ripple verify DIR`: is an evidence pack unchanged since it was written."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_ripple.cli.options import Command, format_option
from dbt_ripple.rendering.output import answer, as_document, count, warn


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  dbt-ripple verify evidence/fct_orders --digest 5f3c...
  dbt-ripple verify evidence/fct_orders --format json
""",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--digest",
    metavar="SHA256",
    help="The digest that `dbt-ripple evidence` printed: without it, a change of a file together with its sum is not found.",
)
@format_option("text", "json")
def verify(folder: Path, digest: str | None, style: str) -> int:
    """Compare an evidence pack with its sums, and with the digest that was printed when it was made.

    Finds every file that was changed, added, removed or renamed, and changes of SHA256SUMS. Exit code 0
    means unchanged, 1 changed, 2 that it could not be compared.
    """
    from dbt_ripple.pages.checksummed_folder import given_digest
    from dbt_ripple.pages.checksummed_folder import verify as compare

    comparison = compare(folder, given_digest(digest) if digest is not None else None)
    if style == "json":
        answer(as_document(comparison))
        return 0 if comparison.intact else 1
    if comparison.differences:
        answer([f"{one.file} {one.message}" for one in comparison.differences])
    else:
        answer(
            [
                f"unchanged: {count(comparison.files, 'file')}, digest of SHA256SUMS {comparison.digest}"
            ]
        )
    if not comparison.digest_compared:
        warn(
            "the sums alone do not show a change by somebody who wrote the new sums, too: give the"
            " digest that was printed when this was made by --digest"
        )
    return 0 if comparison.intact else 1
