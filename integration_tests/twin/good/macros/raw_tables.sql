{#- The raw tables, each as the query that makes it. -#}
{% macro raw_tables() %}
    {% set orders %}
        select
            cast(order_id as bigint) as order_id,
            cast(customer_id as bigint) as customer_id,
            cast(order_date as date) as order_date,
            status,
            cast(order_total as decimal(12, 2)) as order_total,
            legacy_discount_code
        from (values
            (1, 1, '2026-11-02', 'completed', 12.50, 'SPRING'),
            (2, 2, '2026-11-02', 'completed', 80.00, null),
            (3, 1, '2026-11-03', 'cancelled', 3.75, null),
            (4, 3, '2026-11-04', 'completed', 41.20, 'FRIENDS')
        ) as raw (order_id, customer_id, order_date, status, order_total, legacy_discount_code)
    {% endset %}
    {% set customers %}
        select
            cast(customer_id as bigint) as customer_id,
            name,
            email,
            country_code,
            segment,
            fax
        from (values
            (1, 'Ada Green', 'ada@example.com', 'GB', 'retail', null),
            (2, 'Jun Mori', 'jun@example.com', 'JP', 'wholesale', '+81 3 0000'),
            (3, 'Mia Sand', 'mia@example.com', 'DE', 'retail', null)
        ) as raw (customer_id, name, email, country_code, segment, fax)
    {% endset %}
    {{ return({'raw_orders': orders, 'raw_customers': customers}) }}
{% endmacro %}
