-- grain: display_order
-- reads: selected_executions, stg_baselines, stg_measurements, stg_generations
-- review: another run on its own draw, of unknown length: near, and never the same run
-- about: the selected subject
with

grammar as (
    select stg_baselines.execution_id
    from stg_baselines
    inner join selected_executions
        on stg_baselines.execution_id = selected_executions.execution_id
    where stg_baselines.name = 'entropy_floor'
),

published as (
    select figures.*
    from (
        values
        (1, 'held-out loss', 'heldout_nats_per_token', '', '1.071', 'nats'),
        (2, 'held-out perplexity', 'heldout_perplexity', '', '2.918', '1'),
        (3, 'held-out token accuracy', 'heldout_token_accuracy', '', '0.601', '1'),
        (
            4,
            'training-frequency baseline',
            'training_frequency_nats_per_token',
            '',
            '2.352',
            'nats'
        ),
        (5, 'completion of abc|', 'abc|', 'fp32', 'cbc', ''),
        (6, 'logits, BF16 cache', 'largest_logit_error', 'bf16-cache', '0.0385', ''),
        (7, 'logits, INT8 cache', 'largest_logit_error', 'int8-cache', '0.1952', ''),
        (8, 'logits, W8A8', 'largest_logit_error', 'w8a8', '0.3354', ''),
        (9, 'cache, FP32', 'cache_bytes', 'fp32', '2496', 'bytes'),
        (10, 'cache, BF16', 'cache_bytes', 'bf16', '1344', 'bytes'),
        (11, 'cache, INT8', 'cache_bytes', 'int8', '768', 'bytes')
    ) as figures (display_order, figure, measure, case_name, published, unit)
    -- another corpus has nothing to be read against
    where exists (select grammar.execution_id from grammar)
),

measured as (
    select
        stg_measurements.measure,
        stg_measurements.case_name,
        coalesce(
            cast(stg_measurements.value_count as varchar),
            format('{:.4f}', stg_measurements.value_real)
        ) as measured
    from stg_measurements
    inner join selected_executions
        on stg_measurements.execution_id = selected_executions.execution_id
    where stg_measurements.stage in ('evaluate_heldout', 'quantize_cache')
    union all
    select
        stg_generations.prompt as measure,
        stg_generations.release_policy as case_name,
        stg_generations.text as measured
    from stg_generations
    inner join selected_executions
        on stg_generations.execution_id = selected_executions.execution_id
),

compared as (
    select
        published.display_order,
        published.figure,
        published.published,
        published.unit,
        any_value(measured.measured) as measured
    from published
    left join measured
        on
            published.measure = measured.measure
            and published.case_name = measured.case_name
    group by all
)

select * from compared
order by display_order
