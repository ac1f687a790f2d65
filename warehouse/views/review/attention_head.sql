-- grain: query, key
-- reads: selected_executions, stg_attention_weights, stg_token_diagrams
-- review: weights after the query are exactly 0 and each row sums to 1
-- about: the selected subject
with

weights as (
    select stg_attention_weights.*
    from stg_attention_weights
    inner join selected_executions
        on stg_attention_weights.execution_id = selected_executions.execution_id
    where stg_attention_weights.block = 0 and stg_attention_weights.head = 0
    -- one document is shown: the first that was recorded
    qualify
        stg_attention_weights.document_id
        = first(stg_attention_weights.document_id) over (
            order by stg_attention_weights.row_number
        )
),

labels as (
    select
        stg_token_diagrams.document_id,
        stg_token_diagrams.position,
        case
            when stg_token_diagrams.byte_value is null
                then stg_token_diagrams.token_kind
            when stg_token_diagrams.byte_value between 33 and 126
                then chr(cast(stg_token_diagrams.byte_value as integer))
            else printf('x%02x', stg_token_diagrams.byte_value)
        end as label
    from stg_token_diagrams
    inner join selected_executions
        on stg_token_diagrams.execution_id = selected_executions.execution_id
),

labelled as (
    select
        weights.document_id,
        weights.query_position as query,
        weights.key_position as key,
        weights.weight,
        weights.reference_weight,
        coalesce(query_labels.label, cast(weights.query_position as varchar))
            as query_label,
        coalesce(key_labels.label, cast(weights.key_position as varchar))
            as key_label
    from weights
    left join labels as query_labels
        on
            weights.document_id = query_labels.document_id
            and weights.query_position = query_labels.position
    left join labels as key_labels
        on
            weights.document_id = key_labels.document_id
            and weights.key_position = key_labels.position
)

select * from labelled
order by query, key
