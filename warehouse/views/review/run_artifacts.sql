-- grain: run_id, stage, artifact
-- reads: raw.run_links, raw.artifacts
-- review: every file a run made or used, by the name its stage gave it
with

links as (
    select * from raw.run_links
),

artifacts as (
    select * from raw.artifacts
),

described as (
    select
        links.run_id,
        links.stage_number,
        links.stage,
        artifacts.artifact,
        artifacts.sha256,
        artifacts.artifact_bytes
    from links
    inner join artifacts
        on links.execution_id = artifacts.execution_id
)

select * from described
order by run_id, stage_number, artifact
