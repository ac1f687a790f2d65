-- grain: execution_id, row_number
-- reads: selected_executions, stg_lowered_dots
-- review: dense layers have the types of their policy; all other products stay f32
-- about: the selected subject
with

selected as (
    select stg_lowered_dots.*
    from stg_lowered_dots
    inner join selected_executions
        on stg_lowered_dots.execution_id = selected_executions.execution_id
),

dots as (
    select
        * exclude (release_policy),
        release_policy as policy
    from selected
)

select * from dots
order by policy, endpoint, platform, place, execution_id, row_number
