-- grain: execution_id, measure, case_name
-- reads: stg_endpoints, stg_lowered_dots
-- review: each endpoint lists what stays float32; no float32 product stands beside it
with

endpoints as (
    select
        *,
        release_policy || '/' || endpoint as case_name,
        -- what is no JSON holds no product, which is not what is listed
        case when json_valid(matrix_products) then matrix_products else '{}' end
            as products
    from stg_endpoints
),

listed as (
    select
        execution_id,
        release_policy || '/' || endpoint as case_name,
        count(*) as listed_products
    from stg_lowered_dots
    where
        contains(operand_type, 'f32')
        -- only the policy fp32 has float32 in a dense layer
        and (release_policy = 'fp32' or not is_dense)
    group by execution_id, release_policy, endpoint
),

found as (
    select
        endpoints.execution_id,
        endpoints.stage,
        endpoints.case_name,
        coalesce(sum(cast(product.value as bigint)), 0) as found_products
    from endpoints
    left join
        json_tree(endpoints.products) as product
        on
            product.type <> 'OBJECT'
            and regexp_matches(product.key, '^(f32,|[^>]*,f32->)')
    group by endpoints.execution_id, endpoints.stage, endpoints.case_name
),

operations as (
    select
        *,
        trim(unnest(string_split(float32_operations, ','))) as operation
    from endpoints
),

counts as (
    select
        execution_id,
        stage,
        'recounted_float32_operations' as measure,
        case_name,
        count(distinct operation) filter (where operation <> '') as value_count,
        'operations' as unit,
        'arithmetic that stays float32, products aside' as detail
    from operations
    group by execution_id, stage, case_name
    union all
    select
        found.execution_id,
        found.stage,
        'recounted_float32_products_unlisted' as measure,
        found.case_name,
        found.found_products - coalesce(listed.listed_products, 0) as value_count,
        'products' as unit,
        'of ' || found.found_products || ' float32 products' as detail
    from found
    left join listed
        on
            found.execution_id = listed.execution_id
            and found.case_name = listed.case_name
),

shaped as (
    select
        *,
        '3.7' as claim,
        cast(null as double) as value_real
    from counts
)

select * from shaped
order by execution_id, measure, case_name
