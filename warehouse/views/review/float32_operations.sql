-- grain: policy, endpoint, operation
-- reads: selected_executions, stg_endpoints, lowered_dots
-- review: attention, norms and the output head stay float32 under every policy
-- about: the selected subject
with

endpoints as (
    select stg_endpoints.*
    from stg_endpoints
    inner join selected_executions
        on stg_endpoints.execution_id = selected_executions.execution_id
),

arithmetic as (
    select distinct
        release_policy as policy,
        endpoint,
        unnest(string_split(float32_operations, ',')) as operation,
        'arithmetic' as kind
    from endpoints
),

products as (
    select distinct
        policy,
        endpoint,
        'dot_general ' || dot as operation,
        'product' as kind
    from lowered_dots
    where operand_type = 'f32' and accumulator_type = 'f32'
),

operations as (
    select * from arithmetic
    union all
    select * from products
)

select * from operations
order by policy, endpoint, kind desc, operation
