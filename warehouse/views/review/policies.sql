-- grain: execution_id, row_number
-- reads: selected_executions, stg_policies, policy_support, stg_endpoints
-- reads: timing_summary
-- review: what a policy saves stands beside what it costs; what is unsupported says why
-- about: the selected subject
with

policies as (
    select
        stg_policies.*,
        policy_support.is_supported,
        policy_support.multiplied
    from stg_policies
    inner join policy_support
        on
            stg_policies.execution_id = policy_support.execution_id
            and stg_policies.policy = policy_support.policy
    inner join selected_executions
        on stg_policies.execution_id = selected_executions.execution_id
),

artifacts as (
    select
        stg_endpoints.release_policy,
        cast(sum(stg_endpoints.artifact_bytes) as bigint) as artifact_bytes
    from stg_endpoints
    inner join selected_executions
        on stg_endpoints.execution_id = selected_executions.execution_id
    group by stg_endpoints.release_policy
),

timings as (
    select
        release_policy,
        any_value(median_ns) as median_ns
    from timing_summary
    where endpoint = 'decode' and phase = 'warm'
    group by release_policy
),

described as (
    select
        policies.*,
        -- only a release is kept as artifacts and timed alone on the machine
        coalesce(artifacts.artifact_bytes, policies.artifact_bytes)
            as kept_artifact_bytes,
        timings.median_ns as exported_decode_ns,
        case policies.kind
            when 'release' then 1
            when 'experiment' then 2
            else 3
        end as kind_order
    from policies
    left join artifacts
        on
            policies.policy = artifacts.release_policy
            and policies.kind = 'release'
    left join timings
        on
            policies.policy = timings.release_policy
            and policies.kind = 'release'
)

select
    * exclude (kind_order, artifact_bytes, kept_artifact_bytes),
    kept_artifact_bytes as artifact_bytes
from described
order by kind_order, row_number, execution_id
