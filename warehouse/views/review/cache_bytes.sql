-- grain: cache_policy, part
-- reads: selected_executions, stg_cache_arrays
-- review: bf16 halves and int8 quarters keys and values; scales stay the same
-- about: the selected subject
with

arrays as (
    select
        stg_cache_arrays.cache_policy,
        stg_cache_arrays.array_bytes,
        case
            when stg_cache_arrays.array_name like '%scale%' then 'scales'
            when stg_cache_arrays.array_name like '%key%' then 'keys'
            when stg_cache_arrays.array_name like '%value%' then 'values'
            else 'other'
        end as part
    from stg_cache_arrays
    inner join selected_executions
        on stg_cache_arrays.execution_id = selected_executions.execution_id
),

parts as (
    select
        cache_policy,
        part,
        cast(sum(array_bytes) as bigint) as part_bytes
    from arrays
    group by cache_policy, part
),

totals as (
    select
        *,
        cast(
            sum(part_bytes) over (partition by cache_policy) as bigint
        ) as cache_bytes
    from parts
)

select * from totals
order by cache_bytes desc, cache_policy, part
