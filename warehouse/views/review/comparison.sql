-- grain: after_run_id
-- reads: comparison_counts
-- review: the result is agrees; worse and not demonstrated say why in their sentence
with

counted as (
    select
        *,
        equal_rows + met_rows + equal_artifacts + equal_digests as agreeing_values,
        if(baseline_id = '', 'run ', 'the baseline ') || before_run_id
        || if(
            before_system_name <> system_name,
            ' of another system (' || before_system_name || ', not '
            || system_name || ')',
            ''
        ) as counterpart,
        case
            when worse_verdicts + worse_rows + missing_after = 0 then 'differs from'
            else 'is worse than'
        end as manner,
        concat_ws(
            ', ',
            format(
                '{} {} got worse',
                nullif(worse_verdicts, 0),
                if(worse_verdicts = 1, 'verdict', 'verdicts')
            ),
            format(
                '{} exact {}',
                nullif(differing_values, 0),
                if(differing_values = 1, 'value differs', 'values differ')
            ),
            format(
                '{} {} got worse',
                nullif(worse_rows, 0),
                if(worse_rows = 1, 'row', 'rows')
            ),
            format(
                '{} {} missing',
                nullif(missing_after, 0),
                if(missing_after = 1, 'is', 'are')
            )
        ) as complaint,
        coalesce(format('; changed: {}', first_change), '')
        || if(changes > 1, format(' and {} more', changes - 1), '') as change
    from comparison_counts
),

judged as (
    select
        *,
        -- the order of the conditions is the rule
        case
            when before_run_id = after_run_id then 'itself'
            when is_baseline_gone then 'baseline gone'
            when unusable_run_id is not null then 'incomplete'
            when unreadable_baseline is not null then 'unreadable'
            when before_run_id is null then 'no baseline'
            when findings > 0 then 'worse'
            when damaged_stages > 0 then 'damaged'
            when recomputed_stages = 0 then 'not recomputed'
            when agreeing_values = 0 then 'nothing comparable'
            else 'agrees'
        end as cause
    from counted
),

told as (
    select
        *,
        case
            when cause in ('agrees', 'worse') then cause
            when cause in ('itself', 'incomplete') then 'refused'
            else 'not demonstrated'
        end as result,
        case cause
            when 'itself'
                then
                    'Run {0} would be compared with itself, which shows nothing; make '
                    || 'another with `harness run --fresh`.'
            when 'baseline gone'
                then
                    'not demonstrated: the store has no intact record of {1} any more; '
                    || 'accept another run.'
            when 'incomplete' then 'Run {5} is {6}; only completed runs are compared.'
            when 'unreadable'
                then
                    'not demonstrated: {7} cannot be read and may be the baseline '
                    || 'that counts; accept a run again.'
            when 'no baseline'
                then
                    'not demonstrated: no accepted baseline for flow {2}, preset {3}, '
                    || 'this data and {17}; `harness accept {0}` makes it this run.'
            when 'worse' then 'Run {0} {8} {1}: {9}; the first is {10}{11}.'
            when 'damaged'
                then
                    'not demonstrated: {4} stages of the two runs are damaged, or hold '
                    || 'values that no table may hold; compare two intact runs.'
            when 'not recomputed'
                then
                    'not demonstrated: every stage rests on the same execution as '
                    || 'in {1}; `harness run --fresh` recomputes them.'
            when 'nothing comparable'
                then
                    'not demonstrated: nothing that was recomputed can be compared '
                    || 'with {1}.'
            else
                'Run {0} agrees with {1}: stages recomputed {12}, not recomputed {13}; '
                || 'values as before {14}, verdicts as before {15}; claims not '
                || 'demonstrated in either {16}.'
        end as template
    from judged
),

shown as (
    select
        -- identity
        after_run_id,
        before_run_id,
        baseline_id,
        -- the result
        result,
        cause,
        format(
            template,
            after_run_id,
            coalesce(counterpart, ''),
            flow,
            preset,
            damaged_stages,
            coalesce(unusable_run_id, ''),
            coalesce(unusable_status, ''),
            coalesce(unreadable_baseline, ''),
            manner,
            complaint,
            coalesce(first_finding, ''),
            change,
            recomputed_stages,
            not_recomputed_stages,
            agreeing_values,
            equal_verdicts,
            open_verdicts,
            system_name
        ) as sentence,
        -- counts
        * exclude (
            after_run_id, before_run_id, baseline_id, result, cause, template,
            is_baseline_gone, unusable_run_id, unusable_status, unreadable_baseline,
            counterpart, manner, complaint, change, system_name, before_system_name
        )
    from told
)

select * from shown
