-- grain: rung, name, platform
-- reads: claim_rows, selected_executions, stg_target_answers
-- review: what of a target is shown, from its programs to all of its controllers; no
-- review: rung stands for a higher one, and task 5 needs the last that applies
-- about: the selected subject
with

claim_rows as (
    select * from claim_rows
    where review_task = 5
),

executions as (
    select * from selected_executions
),

answers as (
    select * from stg_target_answers
),

-- the platform of the target whose answers the selected subject rests on
measured_on as (
    select distinct answers.platform
    from answers
    inner join executions
        on answers.execution_id = executions.execution_id
    where executions.stage = 'qualify_target'
),

rungs (rung, name, shows, first_claim, last_claim, command) as (
    values
    (
        1, 'exported', 'lowered for the platform; nothing compiled',
        7, 7, 'harness run'
    ),
    (
        2, 'compiled', 'compiled for a topology, not executed',
        8, 8, 'pip install ''text-harness[tpu-compile]'' && harness run'
    ),
    (
        3, 'rehearsed', 'the same protocol over CPU controllers; no target',
        9, 15, 'harness target rehearse --controllers 2'
    ),
    (
        3, 'rehearsed on hosts', 'by workers that share a server and one storage URL',
        14, 14, 'prefect deployment run target/rehearsal --watch'
    ),
    (
        4, 'executed', 'executed on a target by one controller',
        0, 0, 'harness target plan'
    ),
    (
        5, 'all controllers', 'executed by each of them, with a committed restart',
        0, 0, 'harness target plan'
    )
),

platforms (platform, accelerator) as (
    values ('tpu', 'v5litepod-16'), ('gpu', 'nvidia-gpu')
),

-- the fourth rung is one of every controller: signs, numbers, configuration
belonging as (
    select
        claim_rows.claim,
        claim_rows.claim_number,
        claim_rows.measure,
        claim_rows.case_name,
        claim_rows.status,
        rungs.rung,
        rungs.name,
        platforms.platform
    from claim_rows
    cross join rungs
    cross join platforms
    where
        case
            when rungs.rung in (1, 2)
                then
                    claim_rows.claim_number = rungs.first_claim
                    and (
                        claim_rows.case_name = platforms.platform
                        or starts_with(
                            claim_rows.case_name, platforms.platform || '/'
                        )
                    )
            when rungs.rung = 3
                then
                    claim_rows.claim_number
                    between rungs.first_claim and rungs.last_claim
                    and (claim_rows.claim_number = 14)
                    = (rungs.name = 'rehearsed on hosts')
            when rungs.rung = 4 then claim_rows.claim_number in (1, 3, 4)
            else claim_rows.claim_number between 1 and 5
        end
),

-- what was measured on one platform is absent on every other
counted as (
    select
        belonging.rung,
        belonging.name,
        belonging.platform,
        string_agg(
            distinct belonging.claim, ', ' order by belonging.claim
        ) as claims,
        count(*) filter (
            where belonging.status = 'met'
            and (belonging.rung <= 3 or measured_on.platform is not null)
        ) as rows_met,
        count(*) filter (
            where belonging.status in ('unmet', 'invalid')
            and (belonging.rung <= 3 or measured_on.platform is not null)
        ) as rows_unmet,
        count(*) filter (
            where belonging.status in ('missing', 'absent')
            or (belonging.rung > 3 and measured_on.platform is null)
        ) as rows_missing,
        arg_min(
            belonging.measure || coalesce(' ' || nullif(belonging.case_name, ''), ''),
            (belonging.claim_number, belonging.measure, belonging.case_name)
        ) filter (
            where belonging.status <> 'met'
            or (belonging.rung > 3 and measured_on.platform is null)
        ) as first_missing
    from belonging
    left join measured_on
        on belonging.platform = measured_on.platform
    group by belonging.rung, belonging.name, belonging.platform
),

described as (
    select
        -- identity
        rungs.rung,
        platforms.platform,
        -- what
        rungs.name,
        rungs.shows,
        coalesce(counted.claims, '') as claims,
        -- verdict: the order of the conditions is the rule
        case
            when coalesce(counted.rows_unmet, 0) > 0 then 'revise'
            when coalesce(counted.rows_missing, 0) > 0 then 'not demonstrated'
            when coalesce(counted.rows_met, 0) = 0 then 'not demonstrated'
            else 'accept'
        end as verdict,
        coalesce(counted.rows_met, 0) as rows_met,
        coalesce(counted.rows_unmet, 0) as rows_unmet,
        coalesce(counted.rows_missing, 0) as rows_missing,
        -- what would change it
        case
            when counted.rung is null and rungs.rung = 2
                then 'nothing compiles for it without the device'
            when counted.rung is null then 'the contract asks nothing of it'
            else coalesce(counted.first_missing, '')
        end as missing,
        case
            when
                coalesce(counted.rows_met, 0) > 0
                and coalesce(counted.rows_unmet, 0) = 0
                and coalesce(counted.rows_missing, 0) = 0
                then ''
            when rungs.rung > 3 or counted.rung is null
                then 'harness target plan --accelerator ' || platforms.accelerator
            else rungs.command
        end as next_command
    from rungs
    cross join platforms
    left join counted
        on
            rungs.rung = counted.rung
            and rungs.name = counted.name
            and platforms.platform = counted.platform
)

select * from described
order by rung, name, platform desc
