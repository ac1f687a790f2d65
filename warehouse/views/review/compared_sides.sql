-- grain: side
-- reads: raw.compared_runs, runs, raw.subject_digests
-- review: two rows, before and after, where there is something to compare
with

compared as (
    select * from raw.compared_runs
),

runs as (
    select * from runs
),

digests as (
    select * from raw.subject_digests
),

described as (
    select
        compared.side,
        compared.run_id,
        compared.baseline_id,
        runs.run_id is not null as is_run_there,
        runs.flow,
        runs.preset,
        runs.status,
        runs.started_at,
        (
            select any_value(digests.value)
            from digests
            where
                digests.run_id = compared.run_id
                and digests.component = 'data'
        ) as data_sha256,
        coalesce(
            (
                select any_value(digests.value)
                from digests
                where
                    digests.run_id = compared.run_id
                    and digests.component = 'implementation'
            ),
            'the built-in system'
        ) as system_name
    from compared
    left join runs
        on compared.run_id = runs.run_id
)

select * from described
order by side desc
