-- grain: kind, name, value
-- reads: selected_executions, raw.key_components
-- review: one value a setting; two values mean that stages ran under different ones
-- about: the selected subject
with

key_components as (
    select * from raw.key_components
),

components as (
    select
        key_components.value,
        split_part(key_components.component, ':', 1) as kind,
        split_part(key_components.component, ':', 2) as name
    from key_components
    inner join selected_executions
        on key_components.execution_id = selected_executions.execution_id
),

settings as (
    select distinct
        kind,
        name,
        value
    from components
    where kind in ('config', 'runtime', 'distribution')
)

select * from settings
order by kind desc, name, value
