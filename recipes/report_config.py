"""The options of a report: `enc report` makes its command line of them."""

from pathlib import Path

from pydantic import Field

from recipes.fields import MODEL_AND_DATA, OUTPUT
from recipes.options import Options

FILE_NAME = "report.html"


class ReportConfig(Options):
    """All options of a report."""

    folder: Path = Field(
        default=Path("runs"),
        description="The folder of the runs to report on; every run.json in the folders below counts.",
        json_schema_extra=MODEL_AND_DATA | {"argument": "[DIR]"},
    )
    output: Path | None = Field(
        default=None,
        description="The file to write, in .html; otherwise report.html in DIR. With --markdown: in .md; "
        "otherwise it is printed.",
        json_schema_extra=OUTPUT | {"metavar": "FILE"},
    )
    markdown: bool = Field(
        default=False,
        description="A compact version in Markdown instead, for a pull request.",
        json_schema_extra=OUTPUT,
    )

    def problems(self) -> list[str]:
        """A name that no browser opens as what it is."""
        suffix = ".md" if self.markdown else ".html"
        if self.output is not None and self.output.suffix.lower() not in (suffix, suffix.removesuffix("l")):
            return [f"`output` is {str(self.output)!r}; expected a name in {suffix}"]
        return []

    @property
    def page(self) -> Path:
        """Where the page goes."""
        return self.output or self.folder / FILE_NAME
