-- grain: execution_id, claim, measure, case_name
-- reads: stg_cache_arrays, stg_documents, stg_timings, stg_trace_regions
-- review: counts of the rows themselves, so that no program can state another number
with

documents as (
    select
        execution_id,
        stage,
        '1.3' as claim,
        'recounted_documents_not_bytes_plus_one' as measure,
        split as case_name,
        count(*) filter (where valid_targets <> document_bytes + 1) as value_count,
        'documents' as unit,
        'of ' || count(*) || ' rows of documents' as detail
    from stg_documents
    group by execution_id, stage, split
),

cache_bytes as (
    select
        execution_id,
        stage,
        '3.4' as claim,
        'recounted_cache_bytes' as measure,
        cache_policy as case_name,
        cast(sum(array_bytes) as bigint) as value_count,
        'bytes' as unit,
        'from ' || count(*) || ' rows of cache_arrays' as detail
    from stg_cache_arrays
    group by execution_id, stage, cache_policy
),

warm_samples as (
    select
        execution_id,
        stage,
        '4.6' as claim,
        'recounted_warm_samples' as measure,
        endpoint || '/' || release_policy || '/process-' || process as case_name,
        count(*) as value_count,
        'samples' as unit,
        'from rows of timings, all kept' as detail
    from stg_timings
    where phase = 'warm'
    group by execution_id, stage, endpoint, release_policy, process
),

processes as (
    select
        execution_id,
        stage,
        '4.6' as claim,
        'recounted_processes' as measure,
        endpoint || '/' || release_policy as case_name,
        count(distinct process_id) as value_count,
        'processes' as unit,
        'process ids in rows of timings' as detail
    from stg_timings
    where phase = 'warm'
    group by execution_id, stage, endpoint, release_policy
),

regions as (
    select
        execution_id,
        stage,
        '4.7' as claim,
        'recounted_regions' as measure,
        region as case_name,
        count(distinct occurrence) as value_count,
        'regions' as unit,
        'from rows of trace_regions' as detail
    from stg_trace_regions
    group by execution_id, stage, region
),

counts as (
    select * from documents
    union all
    select * from cache_bytes
    union all
    select * from warm_samples
    union all
    select * from processes
    union all
    select * from regions
),

shaped as (
    select
        *,
        cast(null as double) as value_real
    from counts
)

select * from shaped
order by execution_id, claim, measure, case_name
