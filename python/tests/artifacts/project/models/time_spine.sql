select date '2026-01-01' as date_day
