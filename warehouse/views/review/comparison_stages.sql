-- grain: stage
-- reads: subject_stages, raw.run_links, raw.compared_runs, raw.key_components
-- reads: invalid_values
-- review: a stage that both runs take from one execution shows nothing about agreement
-- kept: all
with

stages as (
    select * from subject_stages
),

links as (
    select * from raw.run_links
),

compared as (
    select * from raw.compared_runs
),

-- one side alone has nothing that it could be missing
is_pair as (
    select count(distinct side) = 2 as has_both
    from compared
),

places as (
    select
        links.stage,
        max(links.stage_number) as stage_number
    from links
    inner join compared
        on links.run_id = compared.run_id
    group by links.stage
),

timed as (
    select distinct execution_id
    from raw.key_components
    where starts_with(component, 'machine:')
),

-- no number of an execution with such a value is believed
discredited as (
    select distinct execution_id
    from invalid_values
),

sides as (
    select
        stages.*,
        discredited.execution_id is not null as is_invalid,
        timed.execution_id is not null as measures_time
    from stages
    left join timed
        on stages.execution_id = timed.execution_id
    left join discredited
        on stages.execution_id = discredited.execution_id
    where stages.subject in ('before', 'after')
),

before as (
    select * from sides
    where subject = 'before'
),

later as (
    select * from sides
    where subject = 'after'
),

paired as (
    select
        coalesce(later.stage, before.stage) as stage,
        case
            when before.stage is null then 'missing before'
            when later.stage is null then 'missing after'
            when before.execution_id = later.execution_id then 'not recomputed'
            when not (before.is_intact and later.is_intact) then 'damaged'
            when before.is_invalid or later.is_invalid then 'invalid'
            else 'recomputed'
        end as result,
        coalesce(later.measures_time, before.measures_time) as measures_time,
        before.execution_id as before_execution_id,
        later.execution_id as after_execution_id,
        later.state as after_state,
        later.reason as after_reason
    from before
    full join later
        on before.stage = later.stage
),

numbered as (
    select
        places.stage_number,
        paired.*
    from paired
    inner join places
        on paired.stage = places.stage
    cross join is_pair
    where is_pair.has_both
)

select * from numbered
order by stage_number, stage
