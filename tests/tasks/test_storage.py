"""The storage that hosts share: what is written comes back, or a sentence says why."""

from pathlib import Path

import pytest

from tasks.storage import SETTING, Storage, StorageFailed, storage_url


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(f"file://{tmp_path}/shared")


def test_a_url_is_given_or_set_and_nothing_else_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert storage_url("s3://bucket/folder/") == "s3://bucket/folder"
    with pytest.raises(StorageFailed, match=f"is ''; name a URL.*{SETTING}"):
        storage_url(None)
    with pytest.raises(StorageFailed, match="is '/a/folder'"):
        storage_url("/a/folder")
    monkeypatch.setenv(SETTING, "gs://bucket")
    assert storage_url("") == "gs://bucket"


def test_a_folder_comes_back_and_an_altered_file_does_not(
    storage: Storage, tmp_path: Path
) -> None:
    source, target = tmp_path / "out", tmp_path / "back"
    (source / "records").mkdir(parents=True)
    (source / "records" / "rows.json").write_text("[]")
    (source / "program.json").write_text("{}")
    (source / "checkpoints").mkdir()
    (source / "checkpoints" / "large").write_text("stays")
    digests = storage.put_folder(source, ("records", "program.json", "absent"))
    assert set(digests) == {"records/rows.json", "program.json"}
    storage.get_folder(target, digests)
    assert (target / "records" / "rows.json").read_text() == "[]"
    storage.put("files/program.json", b"{ }")
    with pytest.raises(StorageFailed, match=r"program.json'.*not what was written"):
        storage.get_folder(target, digests)


@pytest.mark.parametrize("place", ["../outside", "/outside"])
def test_a_result_cannot_name_a_file_outside(
    storage: Storage, tmp_path: Path, place: str
) -> None:
    with pytest.raises(StorageFailed, match="leads out"):
        storage.get_folder(tmp_path / "back", {place: "0" * 64})


def test_what_cannot_be_used_is_one_sentence() -> None:
    for url, why in (
        ("file:///dev/null/folder", "refused to write"),
        ("nonsense://folder", "nonsense"),
    ):
        with pytest.raises(StorageFailed, match=why) as refused:
            Storage(url).check()
        assert "\n" not in str(refused.value)


def test_what_lies_there_is_listed_with_its_marks_and_removed(storage: Storage) -> None:
    assert storage.folders("MARK") == {}
    assert storage.get_json("end.json") is None
    storage.put("update-1/MARK", b"")
    storage.put("update-1/arrays", b"")
    storage.put("update-2/arrays", b"")
    storage.put("end.json", b'{"a": 1}')
    assert storage.folders("MARK") == {"update-1": True, "update-2": False}
    assert storage.get_json("end.json") == {"a": 1}
    storage.check()
    storage.remove()
    assert storage.folders("MARK") == {}
    storage.remove()
