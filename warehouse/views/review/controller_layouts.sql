-- grain: execution_id, gang, label, array_name
-- reads: selected_executions, stg_controller_arrays
-- review: a state in parts lies in parts, and all controllers see it alike
-- about: the selected subject
with

arrays as (
    select stg_controller_arrays.*
    from stg_controller_arrays
    inner join selected_executions
        on stg_controller_arrays.execution_id = selected_executions.execution_id
),

layouts as (
    select
        -- which
        execution_id,
        stage,
        gang,
        label,
        program,
        array_name,
        -- how it lies
        min(shape) as shape,
        min(shard_shape) as shard_shape,
        min(devices) as devices,
        bool_and(not is_on_all) as is_in_parts,
        min(sharding) as sharding,
        -- who says so
        count(*) as controllers,
        count(
            distinct concat_ws(' ', shape, shard_shape, devices, sharding)
        ) = 1 as is_seen_alike
    from arrays
    group by all
)

select * from layouts
order by stage, execution_id, gang, label, array_name
