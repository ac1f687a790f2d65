-- grain: execution_id, measure, case_name
-- reads: stg_policies, policy_support
-- review: every policy is complete and counted from its rows, or says why it cannot be
with

policies as (
    select
        stg_policies.*,
        policy_support.is_supported,
        policy_support.is_size_recounted and policy_support.is_quality_recounted
            as is_recounted
    from stg_policies
    inner join policy_support
        on
            stg_policies.execution_id = policy_support.execution_id
            and stg_policies.policy = policy_support.policy
),

judged as (
    select
        *,
        coalesce(
            weight_bytes > 0
            and cache_bytes > 0
            and optimizer_bytes > 0
            and artifact_bytes > 0
            and heldout_targets > 0
            and decode_ns > 0
            and decode_rows > 0
            and isfinite(heldout_nats_per_token)
            and isfinite(largest_logit_error)
            and changed_top_tokens is not null,
            false
        )
        and not list_contains(
            list_transform(
                [
                    weights, activations, accumulation, cache, lowered_operands,
                    compiled_operands, scale_granularity, zero_point, clipping,
                    calibration, device
                ],
                lambda written: coalesce(trim(written), '') -- noqa: PRS
            ),
            ''
        ) as is_complete
    from policies
),

measured as (
    select
        execution_id,
        stage,
        kind as case_name,
        unnest([
            {
                'measure': 'recounted_policies',
                'value_count': count(distinct policy)
            },
            {
                'measure': case kind
                    when 'format' then 'recounted_formats_unsupported'
                    else 'recounted_policies_unsupported'
                end,
                'value_count': count(*) filter (where not is_supported)
            },
            {
                'measure': 'recounted_policies_incomplete',
                'value_count': count(*) filter (where is_supported and not is_complete)
            },
            {
                'measure': 'recounted_policies_miscounted',
                'value_count': count(*) filter (where not is_recounted)
            },
            -- a reason and what was observed where it is unsupported, and only there
            {
                'measure': 'recounted_policies_unexplained',
                'value_count': count(*) filter (
                    where is_supported = (reason is not null)
                    or (not is_supported and trim(detail) = '')
                )
            }
        ]) as counted
    from judged
    group by execution_id, stage, kind
),

shaped as (
    select
        measured.execution_id,
        measured.stage,
        '3.8' as claim,
        measured.counted.measure,
        measured.case_name,
        measured.counted.value_count,
        cast(null as double) as value_real,
        'policies' as unit,
        'from rows of policies' as detail
    from measured
)

select * from shaped
order by execution_id, measure, case_name
