-- grain: subject, claim
-- reads: raw.calibration, raw.key_components, subject_stages
-- review: claims whose checks were drilled on the source that this evidence is from
-- kept: all
with

calibration as (
    select * from raw.calibration
),

stages as (
    select * from subject_stages
),

components as (
    select * from raw.key_components
    where starts_with(component, 'source:')
),

sources as (
    select
        execution_id,
        sha256(
            string_agg(
                substr(component, 8) || ' ' || value, chr(10)
                order by component
            )
        ) as source_sha256
    from components
    where exists (select 1 from calibration)
    group by execution_id
),

drilled as (
    select
        stages.subject,
        calibration.claim,
        count(*) as requirements_drilled
    from calibration
    inner join stages
        on calibration.stage = stages.stage
    inner join sources
        on
            stages.execution_id = sources.execution_id
            and calibration.source_sha256 = sources.source_sha256
    group by stages.subject, calibration.claim
)

select * from drilled
order by subject, claim
