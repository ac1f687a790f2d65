-- grain: execution_id, row_number
-- reads: recounted_losses, recounted_rows, recounted_perplexities, recounted_epochs
-- reads: recounted_initializations, recounted_policies, recounted_settings
-- reads: recounted_validations, recounted_products, recounted_targets
-- reads: recounted_accelerators
-- reads: recounted_refused_pairs, recounted_stopped_trainings, recounted_evaluations
-- review: what SQL recomputes from the rows agrees with what the programs reported
-- kept: all
with

losses as (
    select * from recounted_losses
),

counts as (
    select * from recounted_rows
),

epochs as (
    select * from recounted_epochs
),

perplexities as (
    select * from recounted_perplexities
),

initializations as (
    select * from recounted_initializations
),

policies as (
    select * from recounted_policies
),

products as (
    select * from recounted_products
),

settings as (
    select * from recounted_settings
),

validations as (
    select * from recounted_validations
),

refused_pairs as (
    select * from recounted_refused_pairs
),

stopped_trainings as (
    select * from recounted_stopped_trainings
),

evaluations as (
    select * from recounted_evaluations
),

targets as (
    select * from recounted_targets
),

accelerators as (
    select * from recounted_accelerators
),

derived as (
    select * from losses
    union all by name
    select * from targets
    union all by name
    select * from accelerators
    union all by name
    select * from counts
    union all by name
    select * from epochs
    union all by name
    select * from perplexities
    union all by name
    select * from initializations
    union all by name
    select * from policies
    union all by name
    select * from products
    union all by name
    select * from settings
    union all by name
    select * from validations
    union all by name
    select * from refused_pairs
    union all by name
    select * from stopped_trainings
    union all by name
    select * from evaluations
),

numbered as (
    select
        -- identity
        execution_id,
        stage,
        row_number() over (
            partition by execution_id order by claim, measure, case_name
        ) as row_number,
        -- what
        claim,
        measure,
        case_name,
        -- value
        value_count,
        value_real,
        unit,
        cast(null as varchar) as reason,
        detail
    from derived
)

select * from numbered
order by execution_id, row_number
