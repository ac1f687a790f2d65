"""Rows that the tokenize program writes fit the record classes and their documents."""

import json
from pathlib import Path

import pytest

from model.config import ModelConfig, fixture_manifest, to_dict
from model.programs import tokenize_corpus
from warehouse.errors import RecordError
from warehouse.records.corpus import Document, Split, TokenDiagramRow
from warehouse.schema import check_records, columns, record_from

RECORDS = (Document, Split, TokenDiagramRow)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    request = {"manifest": str(fixture_manifest()), "model": to_dict(ModelConfig())}
    tokenize_corpus.main(request, folder)
    return folder


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.TABLE)
def test_every_row_of_the_program_is_a_valid_record(out: Path, record: type) -> None:
    path = out / "records" / f"{record.TABLE}.json"  # type: ignore[attr-defined]
    records = [record_from(record, row) for row in json.loads(path.read_bytes())]
    check_records(record, records)
    assert records


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.TABLE)
def test_every_column_says_what_it_means(record: type) -> None:
    assert [column.name for column in columns(record) if not column.meaning] == []


def test_a_position_without_its_token_is_no_valid_record(out: Path) -> None:
    row = json.loads((out / "records/token_diagrams.json").read_bytes())[0]
    broken = record_from(TokenDiagramRow, row | {"token_id": None})
    with pytest.raises(RecordError, match="token_id of row 0 is None"):
        check_records(TokenDiagramRow, [broken])
