{% macro is_business_time(hours, time_zone, moment=none) %}
    {%- set found = modules.re.match(
        '^\\s*(?:([a-z]{3})-([a-z]{3})\\s+)?([0-9]{1,2}):([0-9]{2})\\s*-\\s*([0-9]{1,2}):([0-9]{2})\\s*$',
        hours | string | lower
    ) -%}
    {%- set days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] -%}
    {%- set first, last = ((found.group(1) or 'mon'), (found.group(2) or 'fri')) if found else ('', '') -%}
    {%- if first not in days or last not in days -%}
        {%- do exceptions.raise_compiler_error(
            'fresh_within: `business_hours` is ' ~ hours ~ '; it can be "09:00-18:00" (Monday to Friday) or '
            ~ '"mon-sat 09:00-18:00"'
        ) -%}
    {%- endif -%}
    {%- if time_zone not in modules.pytz.all_timezones_set -%}
        {%- do exceptions.raise_compiler_error(
            'fresh_within: `time_zone` is ' ~ time_zone ~ '; it can be the name of a time zone, as Europe/Berlin'
        ) -%}
    {%- endif -%}
    {%- set now = (moment or modules.datetime.datetime.now(modules.pytz.utc)).astimezone(
        modules.pytz.timezone(time_zone)
    ) -%}
    {%- set minute = now.hour * 60 + now.minute -%}
    {%- set opens = (found.group(3) | int) * 60 + (found.group(4) | int) -%}
    {%- set closes = (found.group(5) | int) * 60 + (found.group(6) | int) -%}
    {#- A night shift belongs to the day on which it begins. -#}
    {%- set yesterdays = opens > closes and minute < closes -%}
    {%- set day = (now.weekday() - (1 if yesterdays else 0)) % 7 -%}
    {%- set from, to = days.index(first), days.index(last) -%}
    {%- set on_duty = from <= day <= to if from <= to else (day >= from or day <= to) -%}
    {%- do return(
        on_duty and (opens <= minute < closes if opens < closes else (minute >= opens or minute < closes))
    ) -%}
{% endmacro %}
