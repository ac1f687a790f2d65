-- grain: run_id, stage
-- reads: raw.runs, raw.run_links
-- review: a stage runs again because something changed, and the reason says what
with

runs as (
    select * from raw.runs
),

executed as (
    select * from raw.run_links
    where state = 'executed'
),

described as (
    select
        -- the run
        executed.run_id,
        runs.started_at as run_started_at,
        runs.flow,
        runs.preset,
        -- the stage
        executed.stage_number,
        executed.stage,
        executed.reason,
        executed.execution_id,
        executed.duration_ns / 1e9 as seconds,
        -- kinds of the components that differ, as the reason lists them
        list_sort(
            list_distinct(
                regexp_extract_all(
                    executed.reason,
                    '(?:^|; )([a-z]+) (?:changed|added|removed): ',
                    1
                )
            )
        ) as kinds
    from executed
    inner join runs
        on executed.run_id = runs.run_id
),

caused as (
    select
        * exclude (kinds),
        case
            when len(kinds) > 0 then array_to_string(kinds, ', ') || ' changed'
            when contains(reason, 'must be computed again') then 'damaged'
            else reason
        end as cause
    from described
)

select * from caused
order by run_started_at desc, run_id, stage_number
