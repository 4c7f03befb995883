"""Claims about the project as a whole: what is packaged, what is pinned, where imports point."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("commands", "compress", "encoder", "recipes")


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def normal(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_wheel_holds_exactly_the_four_packages_and_the_presets(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    files = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {
        path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*.py")
    }
    expected |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes/presets").glob("*.toml")}
    assert files == expected


def test_every_dependency_is_pinned_exactly(project, pins):
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *extras["demo"], *extras["dev"]]:
        assert normal(requirement) in pins, f"{requirement} has no line in constraints.txt"
    assert pins["torch"] == "2.13.0"


def test_every_import_is_a_declared_dependency(project):
    declared = {normal(requirement) for requirement in project["dependencies"]}
    declared |= {"sklearn", "annotated-types", "pydantic-core"}  # of scikit-learn, and pydantic's own parts
    undeclared = set()
    for path in (path for name in PACKAGES for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            undeclared |= {name.partition(".")[0] for name in names}
    undeclared -= set(sys.stdlib_module_names) | set(PACKAGES)
    assert {normal(name) for name in undeclared} - declared == set()


def test_pins_name_versions_only():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


@pytest.mark.parametrize("package", PACKAGES)
def test_package_init_is_a_map_without_imports(package):
    source = (ROOT / package / "__init__.py").read_text()
    assert source.startswith('"""')
    assert not re.search(r"^\s*(import|from)\s", source.split('"""', 2)[2], re.MULTILINE)


@pytest.mark.parametrize("package", PACKAGES)
def test_readme_has_a_line_for_every_module(package):
    tree = (ROOT / "README.md").read_text().split("## The tree")[1].split("## Tests")[0]
    modules = {path.name for path in (ROOT / package).glob("*.py")} - {"__init__.py"}
    section = tree.split(f"\n{package}/", 1)[1]
    section = re.split(r"\n[a-z]+/", section)[0]
    assert set(re.findall(r"^  ([a-z0-9_]+\.py) ", section, re.MULTILINE)) == modules


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "command",
    [
        *("finetune", "freeze_sweep", "evaluate", "predict", "bench", "profile", "runs", "report"),
        *("embed", "attention", "probe", "pretrain", "depth"),
        *("prune_heads", "prune_neurons", "drop_layers", "distill", "export", "run", "compress"),
    ],
)
def test_every_command_has_its_recipe_its_test_and_its_page(command):
    for folder in ("commands", "recipes"):
        assert (ROOT / folder / f"{command}.py").exists()
        assert (ROOT / "tests" / folder / f"test_{command}.py").exists()
    assert (ROOT / "docs" / f"{command.replace('_', '-')}.md").exists()


def test_every_command_whose_result_is_a_run_json_is_in_its_documentation():
    source = (ROOT / "commands/app.py").read_text()
    commands = set(re.findall(r"^    \((\w+), \1\.\1\),$", source, re.MULTILINE))
    commands -= {"predict", "report", "runs"}
    (row,) = re.findall(r"^\| `command` \| (.*) \|$", (ROOT / "docs/run-json.md").read_text(), re.MULTILINE)
    assert {name.replace("_", "-") for name in commands} == set(re.findall(r"`([\w-]+)`", row))
