"""What functions do, by name: which aggregate, give several rows, or hide their argument."""

from __future__ import annotations

from typing import Final

AGGREGATE_NAMES: Final = frozenset(
    """
    any approx_count_distinct approx_percentile approx_top_k array_agg avg bit_and bit_or bit_xor
    bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if
    count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last
    last_value listagg max max_by mean measure median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy schema_of_json_agg schema_of_variant_agg skewness some std stddev
    stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg
    try_avg try_sum var_pop var_samp variance histogram approx_distinct arbitrary checksum
    geometric_mean map_agg map_union multimap_agg set_agg set_union numeric_histogram arg_max arg_min
    entropy favg fsum product quantile quantile_cont quantile_disc mad reservoir_quantile sum_no_overflow
    """.split()
)
"""Aggregates that sqlglot may leave as unknown functions: Spark's own list first (a test reads it
from Spark's function registry), then Trino's and DuckDB's."""

GENERATOR_NAMES: Final = frozenset(
    """
    collations explode explode_outer flatten generate_series inline inline_outer json_array_elements
    json_array_elements_text json_each json_tuple jsonb_array_elements jsonb_array_elements_text
    jsonb_each posexplode posexplode_outer regexp_split_to_table sql_keywords stack
    string_split_to_table unnest variant_explode variant_explode_outer
    """.split()
)
"""Functions that give several rows for one."""

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
    "variant_explode": ["pos", "key", "value"],
    "variant_explode_outer": ["pos", "key", "value"],
}
"""Spark's column names where a generator's alias names none (maps differ and stay unknown)."""

CASTS: Final = frozenset(
    "bigint binary boolean decimal double float int smallint string timestamp tinyint".split()
)
"""Functions of Spark that cast; like CAST, they leave a column its name."""

FLATTEN_COLUMNS: Final = ("seq", "key", "path", "index", "value", "this")
"""What Snowflake's FLATTEN puts out."""

ORDERED_SET_NAMES: Final = frozenset({"percentile_cont", "percentile_disc", "mode", "median"})
"""Aggregates whose value comes out of WITHIN GROUP (ORDER BY ...) itself."""
