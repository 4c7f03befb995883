"""Claims about the lists of options in docs/."""

from pathlib import Path

import pytest

from commands.option_docs import BEGIN, commands, options_section, with_section

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_page_lists_the_options_that_help_shows(name):
    page = (DOCS / f"{name}.md").read_text()
    assert page.startswith(f"# enc {name}\n")
    assert with_section(page, options_section(commands()[name])) == page, "run `make docs`"


def test_each_option_is_spelt_as_it_is_typed_with_its_panel_and_its_default():
    section = options_section(commands()["finetune"]).splitlines()
    assert "| **Training** | |" in section
    assert "| `--num-epochs N` | How often every training row is seen. [default: 3] |" in section
    assert any(line.startswith("| `--latency / --no-latency` | Measure") for line in section)
    assert not any("--help" in line for line in section)


def test_a_section_takes_the_place_of_the_old_one_and_leaves_the_rest():
    old = with_section("# enc x\n\nWords.\n", f"{BEGIN}\nold\n<!-- options: end -->")
    assert old.endswith("Words.\n\n" + f"{BEGIN}\nold\n<!-- options: end -->\n")
    new = with_section(old + "\nMore.\n", f"{BEGIN}\nnew\n<!-- options: end -->")
    assert "old" not in new and "\nnew\n" in new and new.endswith("\nMore.\n")
