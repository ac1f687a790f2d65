-- grain: table_name
-- reads: raw.table_meanings
-- review: every table and view, with what a row of it means
select
    table_name,
    layer,
    grain,
    meaning
from raw.table_meanings
order by layer = 'review' desc, layer, table_name
