-- grain: execution_id, claim, measure, one_change, other_change
-- reads: stg_refusals, stg_checkpoint_fields
-- review: every pair of single changes that can be made together
with

singles as (
    select
        execution_id,
        stage,
        claim,
        measure,
        case_name,
        expected_reason
    from stg_refusals
),

-- read off the checkpoint itself and not off the changes that were made to it
settings as (
    select
        execution_id,
        stage,
        -- the first dot parts a field from its part, as in the names of cases
        regexp_replace(field, '\.', '/') as case_name
    from stg_checkpoint_fields
),

damages as (
    select * from singles
    where claim = '2.4' and measure = 'damaged_checkpoint'
),

two_settings as (
    select
        ones.execution_id,
        ones.stage,
        '2.4' as claim,
        'checkpoint_under_another_setting' as measure,
        ones.case_name as one_change,
        others.case_name as other_change
    from settings as ones
    inner join settings as others
        on
            ones.execution_id = others.execution_id
            and ones.case_name < others.case_name
),

damages_under_settings as (
    select
        settings.execution_id,
        settings.stage,
        '2.4' as claim,
        'damaged_checkpoint_under_another_setting' as measure,
        least(settings.case_name, damages.case_name) as one_change,
        greatest(settings.case_name, damages.case_name) as other_change
    from settings
    inner join damages
        on settings.execution_id = damages.execution_id
),

-- of several things wrong with the file itself only the file is named
two_damages as (
    select
        ones.execution_id,
        ones.stage,
        ones.claim,
        ones.measure,
        ones.case_name as one_change,
        others.case_name as other_change
    from damages as ones
    inner join damages as others
        on
            ones.execution_id = others.execution_id
            and ones.case_name < others.case_name
    where
        ones.case_name not in (
            'checksum/file', 'truncated', 'version', 'manifest', 'uncommitted'
        )
        and others.case_name not in (
            'checksum/file', 'truncated', 'version', 'manifest', 'uncommitted'
        )
),

-- two of one kind cannot be wrong at once: targets have one shape
two_of_the_others as (
    select
        ones.execution_id,
        ones.stage,
        ones.claim,
        ones.measure,
        ones.case_name as one_change,
        others.case_name as other_change
    from singles as ones
    inner join singles as others
        on
            ones.execution_id = others.execution_id
            and ones.claim = others.claim
            and ones.measure = others.measure
            and ones.case_name < others.case_name
    where
        ones.measure = 'changed_preprocessing'
        or (
            ones.measure = 'malformed_targets'
            and ones.expected_reason <> others.expected_reason
            -- two malformations meet where both come in at one place
            and regexp_replace(ones.case_name, '[^/]*$', '')
            = regexp_replace(others.case_name, '[^/]*$', '')
        )
),

-- a corpus with two documents in each split has no empty one
bad_corpora as (
    select
        execution_id,
        stage,
        measure || '/' || case_name as case_name
    from singles
    where
        claim in ('1.4', '1.5')
        and measure in (
            'bad_document', 'bad_manifest', 'escaping_path', 'overlapping_splits'
        )
        and case_name <> 'split_empty'
),

two_bad_documents as (
    select
        ones.execution_id,
        ones.stage,
        '1.4' as claim,
        'bad_corpus' as measure,
        ones.case_name as one_change,
        others.case_name as other_change
    from bad_corpora as ones
    inner join bad_corpora as others
        on
            ones.execution_id = others.execution_id
            and ones.case_name < others.case_name
),

wanted as (
    select * from two_settings
    union all
    select * from two_bad_documents
    union all
    select * from damages_under_settings
    union all
    select * from two_damages
    union all
    select * from two_of_the_others
)

select * from wanted
order by execution_id, claim, measure, one_change, other_change
