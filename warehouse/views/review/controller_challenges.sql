-- grain: execution_id, gang, controller
-- reads: selected_executions, stg_controllers, stg_controller_updates
-- review: nonce and code are those demanded, and no process or host repeats in a gang
-- about: the selected subject
with

controllers as (
    select stg_controllers.*
    from stg_controllers
    inner join selected_executions
        on stg_controllers.execution_id = selected_executions.execution_id
),

updates as (
    select
        execution_id,
        gang,
        nonce,
        count(*) as updates
    from stg_controller_updates
    group by all
),

challenges as (
    select
        controllers.execution_id,
        controllers.stage,
        controllers.gang,
        controllers.given_index as controller,
        controllers.nonce = controllers.given_nonce as is_nonce_repeated,
        controllers.code_sha256 = controllers.demanded_code_sha256
            as is_code_demanded,
        controllers.process_index = controllers.given_index
        and controllers.process_count = controllers.given_count as is_in_place,
        controllers.platform,
        controllers.device_kind,
        controllers.local_device_count as devices,
        controllers.global_device_count as devices_of_all,
        controllers.process_id,
        controllers.host,
        coalesce(updates.updates, 0) as updates
    from controllers
    left join updates
        on
            controllers.execution_id = updates.execution_id
            and controllers.gang = updates.gang
            and controllers.nonce = updates.nonce
)

select * from challenges
order by stage, execution_id, gang, controller
