-- grain: component
-- reads: raw.subject_digests, raw.selection
-- review: two runs with the same digests are about the same subject; one of a user's
-- review: implementation names its file too
-- about: the selected subject
with

digests as (
    select * from raw.subject_digests
),

selection as (
    select * from raw.selection
),

selected as (
    select
        digests.component,
        digests.value
    from digests
    inner join selection
        on digests.run_id = selection.run_id
)

select * from selected
order by component
