-- grain: execution_id, policy
-- reads: stg_policies, stg_policy_arrays, stg_cache_arrays, stg_logit_errors
-- review: one criterion for all formats; each figure is that of the rows beneath it
with

policies as (
    select * from stg_policies
),

arrays as (
    select
        execution_id,
        policy,
        sum(array_bytes) filter (where part = 'weights') as weight_bytes,
        sum(array_bytes) filter (where part = 'optimizer') as optimizer_bytes
    from stg_policy_arrays
    group by execution_id, policy
),

caches as (
    select
        execution_id,
        cache_policy,
        sum(array_bytes) as cache_bytes
    from stg_cache_arrays
    group by execution_id, cache_policy
),

gathered as (
    select
        execution_id,
        release_policy,
        count(*) as targets,
        max(largest_error) as largest_error,
        count(*) filter (where is_top_changed) as changed_top_tokens,
        list(loss_nats order by row_number) as losses
    from stg_logit_errors
    group by execution_id, release_policy
),

-- one addition after another, as the program adds: bits and not about
summed as (
    select
        *,
        -- sqlfluff does not know DuckDB's only form of a lambda yet
        list_reduce(losses, lambda total, loss: total + loss) -- noqa: PRS
        / targets as nats_per_token
    from gathered
),

described as (
    select
        policies.execution_id,
        policies.stage,
        policies.policy,
        policies.kind,
        coalesce(
            policies.reached = 'ran'
            and policies.largest_logit_error <= policies.logit_error_limit,
            false
        ) as is_supported,
        case
            when policies.compiled_operands in ('none', 'unread')
                then policies.compiled_operands
            when policies.compiled_operands = policies.lowered_operands then 'native'
            else 'widened'
        end as multiplied,
        -- bytes and quality once more, from the rows
        coalesce(
            arrays.weight_bytes = policies.weight_bytes
            and arrays.optimizer_bytes = policies.optimizer_bytes
            and caches.cache_bytes = policies.cache_bytes,
            false
        ) as is_size_recounted,
        case
            when policies.heldout_targets is null then summed.targets is null
            else coalesce(
                summed.targets = policies.heldout_targets
                and summed.nats_per_token = policies.heldout_nats_per_token
                and summed.largest_error = policies.largest_logit_error
                and summed.changed_top_tokens = policies.changed_top_tokens,
                false
            )
        end as is_quality_recounted
    from policies
    left join arrays
        on
            policies.execution_id = arrays.execution_id
            and policies.policy = arrays.policy
    left join caches
        on
            policies.execution_id = caches.execution_id
            and policies.cache = caches.cache_policy
    left join summed
        on
            policies.execution_id = summed.execution_id
            and policies.policy = summed.release_policy
)

select * from described
order by execution_id, policy
