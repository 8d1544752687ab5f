"""What people are shown runs: the tutorial, the README's blocks, docstrings, the road from SB3."""

import doctest
import os
import pathlib
import re
import subprocess
import sys

import pytest

import fieldswarm
from fieldswarm import _native

HERE = pathlib.Path(__file__).parents[1]
EXAMPLES = HERE / "examples"

#: Seconds that an example may take on a busy machine.
PATIENCE = 600


def test_the_tutorial_runs(monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("FIELDSWARM_SMOKE", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(EXAMPLES / "tutorial.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept in git"
    folder = {"metadata": {"path": str(EXAMPLES)}}
    nbclient.NotebookClient(notebook, timeout=PATIENCE, resources=folder).execute()
    said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    if "not run on a board" in said:
        print(said[said.index("not run on a board") :].splitlines()[0])
    else:
        assert "to the last bit" in said


def test_ppo_becomes_a_blob(tmp_path):
    pytest.importorskip("stable_baselines3", reason="pip install stable-baselines3 to try it")
    command = [sys.executable, str(EXAMPLES / "sb3_to_blob.py"), "--timesteps", "512", "--envs", "1"]
    command += ["--episodes", "1", "--out", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "largest difference to SB3" in ended.stdout
    assert fieldswarm.Policy.load(tmp_path / "ppo.policy").self_test()


def readme_blocks():
    text = (HERE / "README.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("block", readme_blocks(), ids=lambda block: block.splitlines()[-1][:40])
def test_what_the_readme_shows_runs(block, tmp_path):
    if "envs" in block:
        pytest.importorskip("gymnasium")
        pytest.importorskip("pettingzoo")
    code = "import os, fieldswarm\n" + block
    environment = {**os.environ, "TQDM_DISABLE": "1"}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stderr


def test_examples_in_compiled_docstrings_run(tmp_path, monkeypatch):
    """What is compiled has no source in which pytest would look for examples."""
    monkeypatch.chdir(tmp_path)
    runner, parser, said = doctest.DocTestRunner(), doctest.DocTestParser(), []
    for name, text in compiled_docstrings(_native):
        test = parser.get_doctest(text, dict(vars(fieldswarm)), name, None, None)
        runner.run(test, out=said.append)
    results = runner.summarize(verbose=False)
    assert results.attempted > 0 and results.failed == 0, "".join(said)


def compiled_docstrings(module):
    for name, value in vars(module).items():
        if getattr(value, "__doc__", None) and not name.startswith("__") and callable(value):
            yield name, value.__doc__
            for inner, method in vars(value).items() if isinstance(value, type) else ():
                if getattr(method, "__doc__", None) and not inner.startswith("__"):
                    yield f"{name}.{inner}", method.__doc__
