-- grain: table_name, column_name
-- reads: raw.column_meanings
-- review: every column of a loaded table has a meaning; null only where it says when
select
    table_name,
    column_name,
    kind,
    null_when,
    meaning
from raw.column_meanings
order by table_name, column_name
