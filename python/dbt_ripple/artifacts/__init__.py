"""dbt's artifacts (manifest, catalog, run results, sources) -> one typed :class:`Project`.

One fast and tolerant reader for what dbt 1.6 and later write: unknown fields are ignored, missing
fields have a default, and a file that cannot be read is explained in one line.
"""

from __future__ import annotations

from dbt_ripple.artifacts.catalog import catalog_may_contain
from dbt_ripple.artifacts.node_meta import (
    asset_type,
    column_pii,
    contract_version,
    criticality,
    declassified,
    domain,
    has_pii,
    has_tested_key,
    is_canonical,
    is_certified,
    is_own,
    is_public,
    masking_functions,
    owner,
    owner_channel,
    owner_email,
    owner_name,
    ownership,
    referenced_columns,
)
from dbt_ripple.artifacts.node_names import NodeFinder, References, did_you_mean, find_node
from dbt_ripple.artifacts.project import (
    CatalogColumn,
    Column,
    Contract,
    DependsOn,
    Group,
    Macro,
    Metadata,
    Node,
    Project,
    Ref,
    RunResult,
    SourceFreshness,
    TestMetadata,
    Timing,
)
from dbt_ripple.artifacts.read_artifacts import (
    FileContents,
    check_compiled,
    read_files,
    read_project,
)

__all__ = [
    "CatalogColumn",
    "Column",
    "Contract",
    "DependsOn",
    "FileContents",
    "Group",
    "Macro",
    "Metadata",
    "Node",
    "NodeFinder",
    "Project",
    "Ref",
    "References",
    "RunResult",
    "SourceFreshness",
    "TestMetadata",
    "Timing",
    "asset_type",
    "catalog_may_contain",
    "check_compiled",
    "column_pii",
    "contract_version",
    "criticality",
    "declassified",
    "did_you_mean",
    "domain",
    "find_node",
    "has_pii",
    "has_tested_key",
    "is_canonical",
    "is_certified",
    "is_own",
    "is_public",
    "masking_functions",
    "owner",
    "owner_channel",
    "owner_email",
    "owner_name",
    "ownership",
    "read_files",
    "read_project",
    "referenced_columns",
]
