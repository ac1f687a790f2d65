-- grain: execution_id, component
-- reads: raw.executions, raw.key_components
-- review: what differs in the keys of an execution and the one of its stage before it
with

executions as (
    select * from raw.executions
),

components as (
    select * from raw.key_components
),

-- the newest execution of the same stage that was there before
ordered as (
    select
        execution_id,
        key,
        lag(execution_id) over (
            partition by stage order by committed_at, execution_id
        ) as previous_execution_id,
        lag(key) over (
            partition by stage order by committed_at, execution_id
        ) as previous_key
    from executions
),

-- what has the same key has the same components
previous as (
    select
        execution_id,
        previous_execution_id
    from ordered
    where key <> previous_key
),

new_components as (
    select
        previous.execution_id,
        previous.previous_execution_id,
        components.component,
        components.value
    from previous
    inner join components
        on previous.execution_id = components.execution_id
),

old_components as (
    select
        previous.execution_id,
        previous.previous_execution_id,
        components.component,
        components.value
    from previous
    inner join components
        on previous.previous_execution_id = components.execution_id
),

differences as (
    select
        coalesce(new_components.execution_id, old_components.execution_id)
            as execution_id,
        coalesce(
            new_components.previous_execution_id, old_components.previous_execution_id
        ) as previous_execution_id,
        coalesce(new_components.component, old_components.component) as component,
        old_components.value as previous_value,
        new_components.value
    from new_components
    full join old_components
        on
            new_components.execution_id = old_components.execution_id
            and new_components.component = old_components.component
    where new_components.value is distinct from old_components.value
)

select * from differences
order by execution_id, component
