select cast(days.day as date) as date_day
from (values ('2026-11-02'), ('2026-11-03'), ('2026-11-04')) as days (day)
