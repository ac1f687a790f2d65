"""The report: it says what the views say, escapes what it is given, and is one file."""

import base64
import html.parser
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from warehouse.errors import WarehouseError
from warehouse.load import open_warehouse
from warehouse.records.execution import ProgramExecution
from warehouse.records.inference import CacheArray, Generation
from warehouse.records.training import Evaluation, Update
from warehouse.report import write_report
from warehouse.report_parts import PLANS, report_parts
from warehouse.report_rows import ReportRows
from warehouse.report_sections import SECTIONS, VERDICTS
from warehouse.runs import RunFinish, RunStart, StageLink, utc_text
from warehouse.store import Store

HOSTILE = "<script>alert('x')</script>|`rm`|[a](javascript:x)"
VOID = {"meta", "br", "link", "img", "hr", "path", "use", "rect"}


class Outline(html.parser.HTMLParser):
    """Collects tags, addresses and text of a page, and checks that tags are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, Any]]) -> None:
        self.tags.add(tag)
        self.addresses += [
            value for name, value in attributes if name in ("src", "href", "action")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def training_rows() -> list[Any]:
    rows: list[Any] = []
    for number in range(1, 7):
        rows.append(
            Update(
                run_label="uninterrupted",
                update=number,
                epoch=0,
                cursor=16 * number,
                loss_nats=3.0 / number,
                valid_targets=10,
                cumulative_valid_targets=10 * number,
                learning_rate=0.003,
                duration_ns=1_000_000,
            )
        )
    return [
        *rows,
        Evaluation(
            release_policy="fp32",
            split="validation",
            update=6,
            batch_documents=16,
            documents=4,
            loss_sum_nats=15.0,
            valid_targets=10,
            correct_targets=5,
        ),
    ]


def cache_rows() -> list[Any]:
    arrays = ("keys", "values", "key_scales", "value_scales")
    return [
        CacheArray(
            cache_policy=policy,
            array_name=name,
            dtype="float32",
            shape="[1, 1, 12, 2, 12]",
            array_bytes=96 if "scales" in name else size,
        )
        for policy, size in (("fp32", 1152), ("bf16", 576), ("int8", 288))
        for name in arrays
    ]


def hostile_program() -> ProgramExecution:
    return ProgramExecution(
        program="model.programs.train_model",
        label=HOSTILE,
        process_id=7,
        host="host",
        started_at=utc_text(10**18),
        duration_ns=1_500_000,
        peak_memory_bytes=300 * 2**20,
        return_code=-9,
    )


def hostile_generation() -> Generation:
    return Generation(
        release_policy="fp32",
        prompt=HOSTILE,
        expected=None,
        text=HOSTILE,
        token_ids="[1]",
        stop_reason="end_of_sequence",
        new_tokens=1,
        is_expected=None,
        note=HOSTILE,
    )


def commit(store: Store, stage: str, records: list[Any]) -> StageLink:
    execution = store.commit(
        stage=stage,
        key="key",
        components={"runtime:jax": "0.10.2"},
        artifacts=[],
        records=records,
        reason="never executed",
        started_at=utc_text(10**18),
        finished_at=utc_text(10**18 + 10**9),
        host="host",
    )
    return StageLink(
        stage=stage,
        key="key",
        nonce=execution.nonce,
        state="executed",
        reason="never executed",
        duration_ns=10**9,
    )


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose texts are hostile; returns its folder."""
    store = Store(tmp_path_factory.mktemp("report") / "evidence")
    store.start_run(
        RunStart(
            run_id="run-1",
            flow="qualify",
            components={"system": "s", "configuration": "c"},
            preset="fixture",
            is_declared=True,
            configuration={"train": {"updates": 6}},
            started_at=utc_text(10**18),
            host="host",
            process_id=1,
        )
    )
    links = (
        commit(store, "train_model", [hostile_program(), *training_rows()]),
        commit(store, "quantize_cache", cache_rows()),
        commit(store, "export_endpoints", [hostile_generation()]),
    )
    store.finish_run(
        RunFinish(
            run_id="run-1",
            status="completed",
            message="",
            finished_at=utc_text(10**18 + 10**10),
            links=links,
        )
    )
    return store.root


def write_from(root: Path, path: Path, format: str = "html") -> list[Path]:
    with open_warehouse(root) as connection:
        return write_report(ReportRows(connection), "run-1", format, path)


@pytest.fixture(scope="module")
def page(evidence: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The HTML page of the store."""
    (file,) = write_from(evidence, tmp_path_factory.mktemp("page") / "report.html")
    return file.read_text()


@pytest.fixture(scope="module")
def markdown(evidence: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The Markdown page of the store and its pictures."""
    return write_from(evidence, tmp_path_factory.mktemp("page") / "r.md", "markdown")


def test_the_page_is_one_file_without_script_or_network(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    assert outline.tags & {"script", "link", "img", "iframe", "object", "base"} == set()
    assert all(address.startswith("#") for address in outline.addresses)
    assert (
        re.findall(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", outline.text) == []
    )


def test_hostile_text_is_shown_and_not_run(page: str) -> None:
    assert "<script" not in page
    assert Outline(page).text.count(HOSTILE) >= 4


def test_hostile_text_stays_inside_its_markdown_cell(markdown: list[Path]) -> None:
    """Every row has as many cells as the rule below its header."""
    text = markdown[0].read_text()
    assert "<script" not in text
    assert re.search(r"(?<!\\)\]\(javascript", text) is None
    cells, seen = 0, 0
    for line in text.splitlines():
        if line.startswith("| ---"):
            cells = line.count("|")
        elif "alert" in line:
            seen += 1
            assert len(re.findall(r"(?<!\\)\|", line)) == cells
    assert seen == 3


def test_every_claim_of_the_contract_stands_on_the_page(
    page: str, evidence: Path
) -> None:
    with open_warehouse(evidence) as connection:
        claims = connection.execute("select claim, statement from verdicts").fetchall()
    assert len(claims) >= 5
    shown = " ".join(Outline(page).text.split())
    assert [
        c for c, statement in claims if " ".join(statement.split()) not in shown
    ] == []
    assert "not demonstrated" in page


def test_the_page_says_where_the_time_of_its_run_went(
    evidence: Path, tmp_path: Path
) -> None:
    """One sentence above, one row a stage below; a run without parts says so."""
    page = write_from(evidence, tmp_path / "page.html")[0].read_text()
    assert "The run did not record where its time went." in page
    assert "Where the time of this run went" in page


def test_the_pictures_show_the_rows(page: str) -> None:
    text = Outline(page).text
    assert all(total in text for total in ("2,496", "1,344", "768"))
    assert "learning_curve" in page


def test_equal_evidence_gives_equal_pages(
    page: str, evidence: Path, tmp_path: Path
) -> None:
    (again,) = write_from(evidence, tmp_path / "again.html")
    assert again.read_text() == page


def test_damage_is_said_first_and_its_numbers_are_gone(
    page: str, evidence: Path, tmp_path: Path
) -> None:
    assert "Damaged evidence" not in page
    shutil.copytree(evidence, tmp_path / "evidence")
    file = next(tmp_path.glob("evidence/records/*/cache_arrays.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    (damaged,) = write_from(tmp_path / "evidence", tmp_path / "damaged.html")
    text = damaged.read_text()
    assert file.name in text
    assert text.index("Damaged evidence") < text.index("<h2>Verdicts")
    assert "2,496" not in text


def test_markdown_pictures_lie_beside_the_page(markdown: list[Path]) -> None:
    page, *pictures = markdown
    linked = re.findall(r"\]\(([^)]+\.svg)\)", page.read_text())
    assert [str(picture.relative_to(page.parent)) for picture in pictures] == linked
    assert pictures and all("<style>" in picture.read_text() for picture in pictures)


def test_an_unknown_format_and_an_unwritable_place_are_one_sentence(
    evidence: Path, tmp_path: Path
) -> None:
    with pytest.raises(WarehouseError, match="'pdf' is unknown"):
        write_from(evidence, tmp_path / "report.pdf", "pdf")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WarehouseError, match="cannot be written"):
        write_from(evidence, tmp_path / "file" / "report.html")


def test_each_part_that_has_rows_is_one_page_that_needs_no_other_file(
    evidence: Path,
) -> None:
    parts = {
        part.name: part.text
        for part in report_parts(ReportRows(open_warehouse(evidence)))
    }
    assert set(parts) == {"verdicts", "learning-curve", "caches"}
    for text in parts.values():
        assert re.findall(r"\]\((?!data:image/svg)", text) == []
    assert parts["learning-curve"].count("](data:image/svg+xml;base64,") == 1
    assert "| 1.12 | not demonstrated |" in parts["verdicts"]


def test_the_picture_of_a_part_stands_on_a_ground_of_its_own(evidence: Path) -> None:
    """A page may be dark where the system is light; ink and ground fit all the same."""
    parts = {
        part.name: part.text
        for part in report_parts(ReportRows(open_warehouse(evidence)))
    }
    (encoded,) = re.findall(r"base64,([^)]+)\)", parts["caches"])
    picture = base64.b64decode(encoded).decode()
    light, dark = re.findall(r"svg\{background:([^}]+)\}", picture)
    assert light == "#fff"
    assert dark != light
    assert "http" not in picture.replace("http://www.w3.org/", "")


def test_every_part_shows_views_that_the_report_knows() -> None:
    known = {section.view for section in (*SECTIONS, *VERDICTS)}
    assert {view for plan in PLANS.values() for view in plan.views} <= known
