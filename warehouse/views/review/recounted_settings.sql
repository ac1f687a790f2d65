-- grain: execution_id, measure, case_name
-- reads: raw.key_components, raw.executions, raw.run_links, raw.runs
-- review: 0 everywhere; an execution ran under the settings that its run names
with

executions as (
    select * from raw.executions
),

runs as (
    select * from raw.runs
),

links as (
    select * from raw.run_links
),

held as (
    select
        execution_id,
        substr(component, 8) as setting,
        split_part(substr(component, 8), '.', 1) as setting_group,
        -- written alike on both sides, such as 1e-05 and 0.00001
        cast(json_extract(value, '$') as varchar) as setting_value
    from raw.key_components
    where component like 'config:%.%'
),

configurations as (
    select distinct configuration from runs
),

leaves as (
    select
        configurations.configuration,
        substr(leaf.fullkey, 3) as setting,
        cast(leaf.value as varchar) as setting_value
    from configurations, json_tree(configurations.configuration) as leaf
    where leaf.type <> 'OBJECT' and leaf.fullkey not like '%]'
),

used as (
    select distinct
        links.execution_id,
        runs.configuration
    from links
    inner join runs
        on links.run_id = runs.run_id
),

-- what a run names of the groups that the execution was given
named as (
    select distinct
        used.execution_id,
        split_part(leaves.setting, '.', 1) as setting_group,
        leaves.setting,
        leaves.setting_value
    from used
    inner join leaves on used.configuration = leaves.configuration
    where
        (used.execution_id, split_part(leaves.setting, '.', 1))
        in (select (held.execution_id, held.setting_group) from held)
),

compared as (
    select
        execution_id,
        setting_group,
        coalesce(named.setting_value = held.setting_value, false) as is_same
    from named
    full join held
        using (execution_id, setting_group, setting)
),

counts as (
    select
        compared.execution_id,
        executions.stage,
        '1.0' as claim,
        'recounted_settings_apart' as measure,
        compared.setting_group as case_name,
        count(*) filter (where not compared.is_same) as value_count,
        cast(null as double) as value_real,
        'settings' as unit,
        'of ' || count(*) || ' settings' as detail
    from compared
    inner join executions
        on compared.execution_id = executions.execution_id
    group by compared.execution_id, executions.stage, compared.setting_group
)

select * from counts
order by execution_id, measure, case_name
