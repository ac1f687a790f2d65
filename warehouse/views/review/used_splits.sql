-- grain: execution_id, split, documents, valid_targets
-- reads: used_executions, stg_documents
-- review: one row a split; what an execution was given, counted document by document
with

used as (
    select * from used_executions
),

documents as (
    select * from stg_documents
    where stage = 'tokenize_corpus'
),

-- the corpus of an execution is that of a run that used it
corpora as (
    select distinct
        used.execution_id,
        tokenized.execution_id as corpus_execution_id
    from used
    inner join used as tokenized
        on used.run_id = tokenized.run_id
    where tokenized.stage = 'tokenize_corpus'
),

splits as (
    select
        corpora.execution_id,
        corpora.corpus_execution_id,
        documents.split,
        count(*) as documents,
        cast(sum(documents.valid_targets) as bigint) as valid_targets
    from corpora
    inner join documents
        on corpora.corpus_execution_id = documents.execution_id
    group by corpora.execution_id, corpora.corpus_execution_id, documents.split
),

-- tokenized twice, alike, is one row
alike as (
    select distinct
        execution_id,
        split,
        documents,
        valid_targets
    from splits
)

select * from alike
order by execution_id, split, documents, valid_targets
