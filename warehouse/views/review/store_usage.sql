-- grain: stage, kind
-- reads: raw.executions, raw.execution_files, raw.artifacts, raw.run_links
-- review: a file that several executions made lies in the store once, and counts once
with

executions as (
    select * from raw.executions
),

files as (
    select * from raw.execution_files
),

artifacts as (
    select * from raw.artifacts
),

links as (
    select distinct execution_id from raw.run_links
),

listed as (
    select
        'evidence' as kind,
        execution_id || '/' || table_name as file,
        execution_id,
        file_bytes as bytes
    from files
    union all
    select
        'artifact' as kind,
        sha256 as file,
        execution_id,
        artifact_bytes as bytes
    from artifacts
),

made as (
    select
        listed.kind,
        listed.file,
        listed.bytes,
        executions.stage,
        (executions.committed_at, executions.execution_id) as execution_order,
        links.execution_id is not null as is_used
    from listed
    inner join executions
        on listed.execution_id = executions.execution_id
    left join links
        on listed.execution_id = links.execution_id
),

-- it belongs to the stage that made it first
stored as (
    select
        kind,
        file,
        arg_min(stage, execution_order) as stage,
        max(bytes) as bytes,
        count(*) as times_made,
        bool_or(is_used) as is_used
    from made
    group by kind, file
),

summed as (
    select
        stage,
        kind,
        count(*) as files,
        cast(sum(bytes) as bigint) as stored_bytes,
        -- what the same files would take without being shared
        cast(sum(bytes * times_made) as bigint) as made_bytes,
        -- what no run rests on
        cast(coalesce(sum(bytes) filter (where not is_used), 0) as bigint)
            as unused_bytes
    from stored
    group by stage, kind
)

select * from summed
order by stored_bytes desc, stage, kind
