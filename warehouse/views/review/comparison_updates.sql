-- grain: stage, run_label
-- reads: comparison_stages, stg_update_digests
-- review: no first difference; where there is one, it names update, kind and leaf
-- kept: all
with

stages as (
    select * from comparison_stages
),

digests as (
    select
        *,
        -- causes before effects
        list_position(
            [
                'document_ids', 'order', 'cursor', 'epoch', 'step', 'dropout_key',
                'loss_bits', 'gradients', 'first_moment', 'second_moment',
                'parameters', 'average'
            ],
            kind
        ) as kind_order
    from stg_update_digests
),

before as (
    select digests.*
    from digests
    inner join stages
        on digests.execution_id = stages.before_execution_id
),

later as (
    select digests.*
    from digests
    inner join stages
        on digests.execution_id = stages.after_execution_id
),

paired as (
    select
        coalesce(later.stage, before.stage) as stage,
        coalesce(later.run_label, before.run_label) as run_label,
        coalesce(later.update_number, before.update_number) as update_number,
        coalesce(later.kind, before.kind) as kind,
        coalesce(later.leaf, before.leaf) as leaf,
        coalesce(later.kind_order, before.kind_order, 0) as kind_order,
        later.sha256 is null as is_missing_after,
        before.sha256 is null as is_missing_before,
        before.sha256 = later.sha256
        and before.dtype = later.dtype
        and before.shape = later.shape as is_equal
    from before
    full join later
        on
            before.stage = later.stage
            and before.run_label = later.run_label
            and before.update_number = later.update_number
            and before.kind = later.kind
            and before.leaf = later.leaf
),

counted as (
    select
        stage,
        run_label,
        count(*) as digests,
        count(*) filter (where not is_equal) as differing,
        count(*) filter (where is_missing_after) as missing_after,
        count(*) filter (where is_missing_before) as missing_before,
        arg_min(
            { 'update': update_number, 'kind': kind, 'leaf': leaf },
            (update_number, kind_order, kind, leaf)
        ) filter (where not coalesce(is_equal, false)) as first_difference
    from paired
    group by stage, run_label
),

judged as (
    select
        stages.stage_number,
        counted.stage,
        counted.run_label,
        case
            when stages.result <> 'recomputed' then stages.result
            when counted.missing_after > 0 then 'missing after'
            when counted.differing > 0 then 'differs'
            when counted.missing_before > 0 then 'missing before'
            else 'equal'
        end as result,
        counted.digests,
        counted.differing,
        counted.missing_after,
        counted.missing_before,
        counted.first_difference.update as first_update,
        counted.first_difference.kind as first_kind,
        counted.first_difference.leaf as first_leaf
    from counted
    inner join stages
        on counted.stage = stages.stage
)

select * from judged
order by stage_number, run_label
