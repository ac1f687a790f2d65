-- grain: execution_id, case_name
-- reads: stg_stopped_trainings
-- review: 1 everywhere; each says where it stopped and why, and left a good checkpoint
with

stopped as (
    select
        *,
        -- the checkpoint of the update before, as it was when it was committed
        coalesce(
            stop_reason = 'non_finite_' || case_name
            and message <> ''
            and last_good_update = stopped_at_update - 1
            and traced_updates = last_good_update
            and kept_sha256 = committed_sha256
            -- two digests that are missing are not the same checkpoint
            and kept_sha256 <> '',
            false
        ) as is_kept
    from stg_stopped_trainings
),

counted as (
    select
        execution_id,
        stage,
        '2.4' as claim,
        'recounted_stopped_trainings' as measure,
        case_name,
        count(*) filter (where is_kept) as value_count,
        cast(null as double) as value_real,
        'trainings' as unit,
        string_agg(
            'stopped at update ' || coalesce(cast(stopped_at_update as varchar), '-')
            || ' for ' || coalesce(stop_reason, 'no reason')
            || ', checkpoint of update '
            || coalesce(cast(last_good_update as varchar), '-')
            || ' kept as ' || coalesce(left(kept_sha256, 12), '-'),
            '; ' order by row_number
        ) as detail
    from stopped
    group by execution_id, stage, case_name
)

select * from counted
order by execution_id, case_name
