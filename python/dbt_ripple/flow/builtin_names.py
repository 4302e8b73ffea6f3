"""Names of functions and columns that mean something; which kind a function is: `functions`."""

from __future__ import annotations

from typing import Final

BUILT_IN_SCHEMAS: Final = frozenset({"pg_catalog", "safe", "builtin", "system.builtin"})
"""What may stand before the name of an engine's own function (BigQuery's SAFE is no schema)."""

MASKING_NAMES: Final = frozenset(
    """
    aes_encrypt crc32 hash mask md5 md5_hex md5_binary murmur_hash sha sha1 sha1_hex sha2 sha2_hex
    sha224 sha256 sha384 sha512 try_aes_encrypt xxhash64 farm_fingerprint hash_agg hmac
    """.split()
)
"""Functions whose result does not give their argument back (OpenLineage's ``masking``)."""

MASK_MARK: Final = "dbt_ripple.mask"
"""``case 'dbt_ripple.mask' when 'dbt_ripple.mask' then <expression> end`` says that the expression
masks whatever it reads: what the package's macro ``mask`` compiles to."""

GENERATED_COLUMNS: Final = {
    "explode": ["col"],
    "explodeouter": ["col"],
    "explode_outer": ["col"],
    "posexplode": ["pos", "col"],
    "posexplodeouter": ["pos", "col"],
    "posexplode_outer": ["pos", "col"],
    "range": ["id"],
    "session_window": ["session_window"],
    "variant_explode": ["pos", "key", "value"],
    "variant_explode_outer": ["pos", "key", "value"],
    "window": ["window"],
}
"""Spark's column names where a generator's alias names none (maps differ and stay unknown)."""

VOLATILE_NAMES: Final = frozenset(
    """
    currval gen_random_uuid generate_uuid generateuuidv4 monotonically_increasing_id newid nextval
    rand rand_cauchy randn random randstr seq1 seq2 seq4 seq8 setval shuffle uniform uuid uuid_string
    uuidv4 uuidv7
    """.split()
)
"""Functions that give another value each time they are called, by DuckDB's catalogue and Spark's,
Postgres's and Snowflake's documentation."""

CASTS: Final = frozenset(
    "bigint binary boolean decimal double float int smallint string timestamp tinyint".split()
)
"""Functions of Spark that cast; like CAST, they leave a column its name."""

FLATTEN_COLUMNS: Final = ("seq", "key", "path", "index", "value", "this")
"""What Snowflake's FLATTEN puts out."""

ORDERED_SET_NAMES: Final = frozenset({"percentile_cont", "percentile_disc", "mode", "median"})
"""Aggregates whose value comes out of WITHIN GROUP (ORDER BY ...) itself."""
