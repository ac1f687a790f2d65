"""A user's file: what it does wrong becomes one sentence, with the function's name.

One process calls every variant of the example in `tests/data/implementations`, because
JAX takes longer to load than all of them to be called.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from model.implementation import guarded_functions
from model.presets import preset
from model.refusal import ReasonCode, Refused
from tasks.program_environment import program_environment

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "tests" / "data" / "implementations"
MODEL = preset("fixture").model
"""Functions of somebody's, spoiled, and a part of the sentence that each deserves."""
SPOILED = {
    "raises": (
        "def encode(data):\n    return {}['nowhere']\n",
        "spoiled.py, line 2: `encode` raises KeyError: 'nowhere'",
    ),
    "shape": (
        "import jax.numpy as jnp\n"
        "def logits(parameters, tokens, model):\n"
        "    return jnp.zeros((tokens.shape[1], tokens.shape[0], 259))\n",
        "`logits` returns float32 [12, 2, 259]; it has to return float32 "
        "[B, T, V] = [2, 12, 259]",
    ),
    "dtype": (
        "import numpy as np\n"
        "def encode(data):\n    return np.frombuffer(data, np.uint8) + np.int64(3)\n",
        "`encode` returns int64 [5]; it has to return int32 [T] = [5]",
    ),
    "nan": (
        "import jax.numpy as jnp\n"
        "def token_losses(logits, targets):\n"
        "    return jnp.where(targets == 0, jnp.nan, 0.0)\n",
        "`token_losses` returns 3 of 24 numbers that are not finite",
    ),
    "mutates": (
        "def save(arrays):\n    arrays.pop('step')\n    return b''\n",
        "`save` changes its argument `arrays`",
    ),
    "writes into an array": (
        "import numpy as np\n"
        "def evaluate(parameters, tokens, model, batch_documents):\n"
        "    tokens[:] = 0\n"
        "    rows = len(tokens)\n"
        "    return (np.zeros((rows, 12), 'float32'), np.zeros((rows, 12), 'int32'),\n"
        "            np.zeros(rows, 'int32'))\n",
        "`evaluate` changes its argument `tokens`",
    ),
    "hidden state": (
        "import numpy as np\n"
        "draws = np.random.default_rng(0)\n"
        "def batch_order(seed, epoch, documents):\n"
        "    return draws.permutation(documents).astype('int32')\n",
        "`batch_order` returns something else when it is called again",
    ),
    "remembers": (
        "import numpy as np\n"
        "seen = set()\n"
        "def batch_order(seed, epoch, documents):\n"
        "    seen.add(documents)\n"
        "    return np.roll(np.arange(documents, dtype='int32'), len(seen))\n",
        "returns something else after it was called with other arguments",
    ),
    "stuck on its first arguments": (
        "import numpy as np\nfrom beside import kept\n"
        "def batch_order(seed, epoch, documents):\n"
        "    of = kept.setdefault('epoch', epoch)\n"
        "    return (np.arange(documents, dtype='int32') + of) % documents\n",
        "`batch_order` returns something else when its first call was with other",
    ),
    "not traced": (
        "import numpy as np\n"
        "def logits(parameters, tokens, model):\n"
        "    table = np.asarray(parameters['wte.weight'])\n"
        "    return table[np.asarray(tokens)] @ table.T\n",
        "it runs inside jax.jit: use jax.numpy",
    ),
    "layout": (
        "import numpy as np\n"
        "def initial_parameters(model, seed):\n"
        "    return {'embedding': np.zeros((259, 24), 'float32')}\n",
        "`initial_parameters` returns parameters whose dictionary lacks",
    ),
    "raises what no one catches": (
        "def decode(tokens):\n    raise KeyboardInterrupt\n",
        "spoiled.py, line 2: `decode` raises KeyboardInterrupt; it has to return",
    ),
    "raises what cannot be shown": (
        "class Odd(BaseException):\n"
        "    def __str__(self):\n        return self.nothing\n"
        "def decode(tokens):\n    raise Odd\n",
        "spoiled.py, line 5: `decode` raises Odd; it has to return",
    ),
    "returns what cannot be read": (
        "class Array:\n"
        "    dtype = 'int32'\n"
        "    def shape(self):\n        return (2,)\n"
        "def encode(data):\n    return Array()\n",
        "`encode` returns a Array that cannot be read (TypeError: 'method' object",
    ),
    "returns what cannot be compared": (
        "class Odd:\n"
        "    def __getattr__(self, name):\n        raise RuntimeError(name)\n"
        "def save(arrays):\n    return b''\n"
        "def restore(data):\n    return {'step': Odd()}\n",
        "`restore` returns something that cannot be compared (RuntimeError: dtype)",
    ),
    "speaks in colours": (
        "def decode(tokens):\n    raise ValueError('\\x1b[31mred\\x07')\n",
        "`decode` raises ValueError: ?[31mred?; it has to return",
    ),
    "not filled in": (
        "def decode(tokens):\n    raise NotImplementedError\n",
        "`decode` is not filled in; it has to return bytes",
    ),
    "no function": ("decode = 7\n", "`decode` is 7, no function"),
    "restores other bits": (
        "import io\nimport numpy as np\n"
        "def save(arrays):\n"
        "    file = io.BytesIO()\n"
        "    np.savez(file, **arrays)\n"
        "    return file.getvalue()\n"
        "def restore(data):\n"
        "    held = dict(np.load(io.BytesIO(data)))\n"
        "    return held | {'wte.weight': held['wte.weight'].astype('float16')}\n",
        "`restore` does not give back 'wte.weight' as `save` got it",
    ),
}
HELD = {"somebody": 13, "somebodys_cache": 6}
"""Files of the example, and how many functions of the system each holds."""
SEVERAL = """
import json, sys
from pathlib import Path
from model.checks.conformance import check_function, check_saved
from model.config import ModelConfig
from model.implementation import forget, guarded_functions
from model.refusal import Refused
found = {}
for name in sys.argv[1:]:
    try:
        held = guarded_functions(Path(name), 60.0, lambda refused: None)
        forget(Path(name))
        fresh = guarded_functions(Path(name), 60.0, lambda refused: None)
        rows = [check_function(each, fresh[key], ModelConfig())
                for key, each in held.items() if key != "restore"]
        if "restore" in held:
            rows.append(check_saved(held["save"], held["restore"], ModelConfig()))
        found[name] = [row.found for row in rows]
    except Refused as refused:
        found[name] = [refused.message]
sys.stdout.write(json.dumps(found))
"""


def _end(refused: Refused) -> None:
    raise AssertionError(refused.message)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What was found about each spoiled file, and about the example."""
    folder = tmp_path_factory.mktemp("spoiled")
    files = {name: str(EXAMPLES / f"{name}.py") for name in HELD}
    for name, (text, _) in SPOILED.items():
        file = folder / name / "spoiled.py"
        file.parent.mkdir()
        file.write_text(text, "utf-8")
        file.with_name("beside.py").write_text("kept = {}\n", "utf-8")
        files[name] = str(file)
    ended = subprocess.run(
        [sys.executable, "-c", SEVERAL, *files.values()],
        env=program_environment(REPOSITORY),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    return {name: found[file] for name, file in files.items()}


@pytest.mark.parametrize("name", list(HELD))
def test_somebody_elses_functions_have_the_form_of_the_system(
    told: dict[str, list[str]], name: str
) -> None:
    """Every function of the protocol, sharing no code with the built-in ones."""
    assert told[name] == [""] * HELD[name]


@pytest.mark.parametrize("name", list(SPOILED))
def test_what_a_function_does_wrong_is_one_sentence_with_its_name(
    told: dict[str, list[str]], name: str
) -> None:
    """A sentence says what was found and what was allowed, and holds no traceback."""
    sentences = [sentence for sentence in told[name] if sentence]

    assert len(sentences) == 1
    assert SPOILED[name][1] in sentences[0]
    assert "\n" not in sentences[0]
    assert sentences[0].startswith("spoiled.py")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("def encode(:\n", "line 1, cannot be loaded: SyntaxError"),
        ("import nothing_of_this_name\n", "line 1, cannot be loaded: ModuleNotFound"),
        ("raise SystemExit(0)\n", "line 1, cannot be loaded: SystemExit: 0"),
        ("def logit(tokens):\n    return 1\n", "did you mean 'logits' by 'logit'?"),
        ("x = 1\n", "defines no function of the system"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(
    tmp_path: Path, text: str, part: str
) -> None:
    """Syntax, imports and exits name their line; a near name is asked about."""
    file = tmp_path / "mine.py"
    file.write_text(text, "utf-8")
    with pytest.raises(Refused) as refused:
        guarded_functions(file, 60.0, _end)

    assert refused.value.code is ReasonCode.IMPLEMENTATION_UNREADABLE
    assert part in refused.value.message


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    """The path is in the sentence."""
    with pytest.raises(Refused, match=r"There is no file '.*absent\.py'"):
        guarded_functions(tmp_path / "absent.py", 60.0, _end)
