-- grain: stage, artifact
-- reads: comparison_stages, raw.artifacts
-- review: what a stage made has the same bytes, where it holds no time or process id
with

stages as (
    select * from comparison_stages
),

artifacts as (
    select * from raw.artifacts
),

before as (
    select
        stages.stage,
        artifacts.artifact,
        artifacts.sha256
    from stages
    inner join artifacts
        on stages.before_execution_id = artifacts.execution_id
),

later as (
    select
        stages.stage,
        artifacts.artifact,
        artifacts.sha256
    from stages
    inner join artifacts
        on stages.after_execution_id = artifacts.execution_id
),

paired as (
    select
        coalesce(later.stage, before.stage) as stage,
        coalesce(later.artifact, before.artifact) as artifact,
        before.sha256 as before_sha256,
        later.sha256 as after_sha256
    from before
    full join later
        on
            before.stage = later.stage
            and before.artifact = later.artifact
),

described as (
    select
        stages.stage_number,
        paired.stage,
        paired.artifact,
        -- a killed training leaves its process id, a stage that measures its times
        case
            when starts_with(paired.artifact, 'killed-') then 'process'
            when stages.measures_time then 'timing'
            else 'exact'
        end as kind,
        stages.result as stage_result,
        paired.before_sha256,
        paired.after_sha256
    from paired
    inner join stages
        on paired.stage = stages.stage
),

judged as (
    select
        * exclude (stage_result),
        case
            when stage_result <> 'recomputed' then stage_result
            when after_sha256 is null then 'missing after'
            when before_sha256 is null then 'missing before'
            when kind <> 'exact' then 'shown'
            when before_sha256 = after_sha256 then 'equal'
            else 'differs'
        end as result
    from described
)

select * from judged
order by stage_number, artifact
