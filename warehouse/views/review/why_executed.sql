-- grain: run_id, stage, component
-- reads: raw.run_links, execution_differences
-- review: each stage that ran again names what differs from the execution before it
with

links as (
    select * from raw.run_links
),

differences as (
    select * from execution_differences
),

explained as (
    select
        links.run_id,
        links.stage_number,
        links.stage,
        links.state,
        links.reason,
        coalesce(differences.component, '') as component,
        differences.previous_value,
        differences.value,
        links.execution_id,
        differences.previous_execution_id
    from links
    left join differences
        on
            links.execution_id = differences.execution_id
            and links.state = 'executed'
)

select * from explained
order by run_id, stage_number, component
