-- grain: after_run_id
-- reads: compared_sides, comparison_stages, comparison_rows, comparison_artifacts
-- reads: comparison_updates, comparison_verdicts, comparison_findings, raw.damage
-- reads: comparison_changes
-- review: what stands behind the result of a comparison, counted
with

sides as (
    select
        any_value(run_id) filter (where side = 'after') as after_run_id,
        any_value(run_id) filter (where side = 'before') as before_run_id,
        any_value(baseline_id) filter (where side = 'before') as baseline_id,
        any_value(flow) filter (where side = 'after') as flow,
        any_value(preset) filter (where side = 'after') as preset,
        any_value(system_name) filter (where side = 'after') as system_name,
        any_value(system_name) filter (where side = 'before') as before_system_name,
        arg_min(run_id, side) filter (where coalesce(status, '') <> 'completed')
            as unusable_run_id,
        arg_min(coalesce(status, 'gone'), side)
        filter (where coalesce(status, '') <> 'completed') as unusable_status,
        coalesce(bool_or(side = 'before' and not is_run_there), false)
            as is_baseline_gone
    from compared_sides
    having count(*) > 0
),

damage as (
    select * from raw.damage
    where kind = 'baseline record'
),

-- a decision that cannot be read may have been the newest of this scope
unreadable as (
    select damage.path
    from damage
    cross join sides
    where
        -- a run that was named is no decision
        coalesce(sides.baseline_id, 'none') <> ''
        and damage.path > 'baselines/' || coalesce(sides.baseline_id, '')
),

stages as (
    select
        count(*) filter (where result = 'recomputed') as recomputed_stages,
        count(*) filter (where result = 'not recomputed') as not_recomputed_stages,
        count(*) filter (where result in ('damaged', 'invalid')) as damaged_stages
    from comparison_stages
),

measured as (
    select
        count(*) filter (where kind = 'exact' and result = 'equal') as equal_rows,
        count(*) filter (where kind = 'limited' and result in ('equal', 'drifted'))
            as met_rows,
        count(*) filter (where result = 'drifted') as drifted_rows,
        count(*) filter (where result = 'worse timing') as worse_timings
    from comparison_rows
),

artifacts as (
    select count(*) filter (where result = 'equal') as equal_artifacts
    from comparison_artifacts
),

updates as (
    select
        cast(coalesce(sum(digests) filter (where result = 'equal'), 0) as bigint)
            as equal_digests
    from comparison_updates
),

verdicts as (
    select
        count(*) filter (where result = 'equal') as equal_verdicts,
        count(*) filter (where result = 'better') as better_verdicts,
        count(*) filter (where result = 'no value') as open_verdicts
    from comparison_verdicts
),

findings as (
    select
        count(*) as findings,
        count(*) filter (where kind <> 'verdict' and result = 'differs')
            as differing_values,
        count(*) filter (where kind = 'row' and result = 'worse') as worse_rows,
        count(*) filter (where result = 'missing after') as missing_after,
        count(*) filter (where kind = 'verdict' and result = 'worse')
            as worse_verdicts,
        arg_min(place, finding_number) as first_finding
    from comparison_findings
),

changes as (
    select
        count(*) as changes,
        arg_min(
            kind || ' ' || name || ' ' || coalesce(before_value, 'none') || ' -> '
            || coalesce(after_value, 'none'),
            change_number
        ) as first_change
    from comparison_changes
),

decisions as (
    select min(path) as unreadable_baseline
    from unreadable
),

counted as (
    select
        sides.*,
        decisions.*,
        stages.*,
        measured.*,
        artifacts.*,
        updates.*,
        verdicts.*,
        findings.*,
        changes.*
    from sides
    cross join decisions
    cross join stages
    cross join measured
    cross join artifacts
    cross join updates
    cross join verdicts
    cross join findings
    cross join changes
)

select * from counted
