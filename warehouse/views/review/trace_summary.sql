-- grain: region
-- reads: selected_executions, stg_trace_regions
-- review: five occurrences of each region, and a code line that it delimits
-- about: the selected subject
with

regions as (
    select stg_trace_regions.*
    from stg_trace_regions
    inner join selected_executions
        on stg_trace_regions.execution_id = selected_executions.execution_id
),

summary as (
    select
        region,
        count(*) as occurrences,
        quantile_disc(host_ns, 0.5) as median_host_ns,
        quantile_disc(ready_ns, 0.5) as median_ready_ns,
        min(operations) as least_operations,
        min(code_file || ':' || code_line) as code
    from regions
    group by region
)

select * from summary
order by region
