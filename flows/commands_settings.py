"""`harness settings`: what `--set` can change, in the words of a deployment's form."""

from typing import Annotated, Any

from cyclopts import Parameter

from flows.display import print_json, print_lines, print_table
from flows.options import Json
from flows.reading import check_known
from model.config import setting_paths
from model.limits import allowed_words
from model.presets import PRESETS, preset

COLUMNS = {
    "setting": "setting",
    "value": "value",
    "allowed": "allowed",
    "meaning": "meaning",
}


def settings(
    group: Annotated[
        str | None,
        Parameter(help="Only this group, such as train or train.optimizer."),
    ] = None,
    /,
    *,
    preset_name: Annotated[
        str, Parameter(name="--preset", help="Preset whose values are shown.")
    ] = "fixture",
    is_json: Json = False,
) -> int:
    """List the settings that `--set` can change: value, limits, meaning and unit."""
    from flows.settings_form import meaning_of, value_at

    check_known("Preset", preset_name, list(PRESETS))
    config = preset(preset_name)
    paths = list(setting_paths(config))
    if group is not None:
        groups = dict.fromkeys(path.rpartition(".")[0] for path in paths)
        check_known("Group", group, [*groups])
        paths = [path for path in paths if path.startswith(f"{group}.")]
    rows: list[dict[str, Any]] = [
        {
            "setting": path,
            "value": value_at(config, path),
            "allowed": allowed_words(path, value_at(config, path)),
            "meaning": meaning_of(path),
        }
        for path in paths
    ]
    if is_json:
        print_json(rows)
        return 0
    print_table(rows, COLUMNS, whole=["setting"])
    print_lines(["", f"Next: harness run --preset {preset_name} --set KEY=VALUE"])
    return 0
