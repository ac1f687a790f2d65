-- grain: setting
-- reads: raw.runs, raw.selection
-- review: the configuration that all else is read against, one row a setting
with

runs as (
    select * from raw.runs
),

selection as (
    select * from raw.selection
),

selected as (
    select runs.configuration
    from runs
    inner join selection
        on runs.run_id = selection.run_id
),

leaves as (
    select
        substr(leaf.fullkey, 3) as setting,
        cast(leaf.value as varchar) as setting_value
    from selected, json_tree(selected.configuration) as leaf
    -- a list is one setting, and so are its elements
    where leaf.type <> 'OBJECT' and leaf.fullkey not like '%]'
)

select * from leaves
order by setting
