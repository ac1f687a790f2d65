-- grain: ending, stage, cause
-- reads: raw.runs, runs
-- review: no row; what fails more than once for one cause has a cause to be removed
with

recorded as (
    select * from raw.runs
),

runs as (
    select * from runs
),

ended as (
    select
        runs.run_id,
        runs.started_at,
        runs.host,
        runs.message,
        if(recorded.status is null, 'killed', runs.status) as ending
    from runs
    inner join recorded
        on runs.run_id = recorded.run_id
    where runs.status not in ('completed', 'running')
),

named as (
    select
        *,
        regexp_extract(message, '^([a-z][a-z0-9_]*) failed: ', 1) as stage,
        regexp_replace(message, '^[a-z][a-z0-9_]* failed: ', '') as text
    from ended
),

-- two messages are one cause when only names, places, digests or numbers differ
normalised as (
    select
        *,
        left(
            regexp_replace(
                regexp_replace(
                    regexp_replace(
                        regexp_replace(
                            split_part(text, chr(10), 1), '''[^'']*''', '''…''', 'g'
                        ),
                        '(^|\s)/\S+',
                        '\1/…',
                        'g'
                    ),
                    '\b[0-9a-f]*[0-9][0-9a-f]{7,}\b',
                    '#',
                    'g'
                ),
                '[0-9]+(\.[0-9]+)?',
                'N',
                'g'
            ),
            160
        ) as cause
    from named
),

counted as (
    select
        ending,
        stage,
        cause,
        count(*) as runs,
        min(started_at) as first_at,
        max(started_at) as last_at,
        arg_max(run_id, (started_at, run_id)) as newest_run_id,
        arg_max(message, (started_at, run_id)) as newest_message,
        string_agg(distinct host, ', ' order by host) as hosts
    from normalised
    group by ending, stage, cause
)

select * from counted
order by last_at desc, ending, stage, cause
