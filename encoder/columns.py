"""Which columns hold the text, its pair and the label: by convention, or as the user says."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from encoder.errors import DataError, did_you_mean

TEXT_COLUMNS = ("text", "sentence", "review", "content", "question", "document")
LABEL_COLUMNS = ("label", "labels", "class", "target", "intent", "sentiment", "category")
# Labels where no column has one of those names, as in data of similarity; beside them it is a model's word.
SECOND_LABEL_COLUMNS = ("score",)
PAIR_COLUMNS = (
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("text", "text_pair"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_a", "sentence_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question_1", "question_2"),
    ("question", "answer"),
    ("question", "passage"),
    ("question", "context"),
    ("question", "sentence"),
    ("query", "passage"),
    ("query", "document"),
)


@dataclass(frozen=True)
class Columns:
    """Names of the columns in use; ``text_pair`` only for pairs, ``label`` not for prediction."""

    text: str
    text_pair: str | None = None
    label: str | None = None

    def names(self) -> dict[str, str]:
        """Role → column, without the roles that nothing fills."""
        roles = {"text": self.text, "text_pair": self.text_pair, "label": self.label}
        return {role: column for role, column in roles.items() if column is not None}


def choose_columns(
    available: Sequence[str],
    *,
    where: str,
    text: str | None = None,
    text_pair: str | None = None,
    label: str | None = None,
    need_label: bool = True,
    pair: bool | None = None,
) -> Columns:
    """The columns to read among ``available`` (those of ``where``).

    ``text``, ``text_pair`` and ``label`` are the user's choices; what is not chosen is found by name, in any
    case. A pair such as text_a/text_b goes before a single text. ``pair`` says what a trained model takes.
    Raises ``DataError`` naming the columns and the option when none or more than one would do.
    """
    search = _Search(available, where)
    given = {"text": text, "text-pair": text_pair, "label": label}
    chosen = {role: search.named(role, name) for role, name in given.items() if name is not None}
    if label is None and need_label:
        chosen["label"] = search.by_convention("label", LABEL_COLUMNS, second=SECOND_LABEL_COLUMNS)
    if text is None:
        taken = {column for column in chosen.values() if column}
        chosen |= search.texts(taken, pair=pair, pair_is_named=text_pair is not None)
    elif pair and text_pair is None:
        search.refuse("the model takes pairs of texts: give --text-pair-column too")
    if pair is False and text_pair is not None:
        search.refuse(f"--text-pair-column {text_pair!r}: the model takes a single text")
    columns = [column for column in chosen.values() if column]
    if not search.problems and len(set(columns)) < len(columns):
        roles = ", ".join(f"{role} {column!r}" for role, column in chosen.items())
        search.refuse(f"one column cannot be two things: {roles}")
    found_text = chosen.get("text")
    if search.problems or found_text is None:
        raise DataError.from_problems([*search.problems, f"the columns are: {', '.join(available)}"])
    return Columns(found_text, chosen.get("text-pair"), chosen.get("label"))


class _Search:
    """Finds a column for each role among ``available``; ``problems`` are those of the roles without one."""

    def __init__(self, available: Sequence[str], where: str) -> None:
        self._available, self._where = available, where
        self.problems: list[str] = []

    def refuse(self, problem: str) -> None:
        """Add to ``problems``."""
        self.problems.append(f"{self._where}: {problem}")

    def named(self, role: str, name: str) -> str | None:
        """The column that the user calls ``name``."""
        column = self._find(name)
        if column is None:
            self.refuse(f"no column {name!r} (--{role}-column){did_you_mean(name, self._available)}")
        return column

    def by_convention(
        self,
        role: str,
        names: Sequence[str],
        taken: AbstractSet[str] = frozenset(),
        *,
        second: Sequence[str] = (),
    ) -> str | None:
        """The only column called one of ``names``, or else ``second``, and not ``taken`` by another role."""
        found = [column for column in self._called(names) or self._called(second) if column not in taken]
        if len(found) == 1:
            return found[0]
        if found:
            options = " and ".join(map(repr, found))
            self.refuse(f"{options} could each be the {role}: choose with --{role}-column")
        else:
            self.refuse(
                f"no column is called {', '.join([*names, *second])}: name the {role} with --{role}-column, "
                "or add the header line if it is missing"
            )
        return None

    def texts(
        self, taken: AbstractSet[str], *, pair: bool | None, pair_is_named: bool
    ) -> dict[str, str | None]:
        """The columns of a text that the user did not name and, where there is one, of its pair, by role."""
        pairs = [] if pair_is_named or pair is False else self._pairs(taken)
        if len(pairs) > 1:
            shown = "; ".join("/".join(columns) for columns in pairs)
            self.refuse(
                f"more than one pair of texts ({shown}): choose with --text-column and --text-pair-column"
            )
        elif pairs:
            return dict(zip(("text", "text-pair"), pairs[0], strict=True))
        elif pair and not pair_is_named:
            single = self._called(TEXT_COLUMNS)
            has = f", and of texts there is only {single[0]!r}" if len(single) == 1 else ""
            self.refuse(f"the model takes pairs of texts{has}: give --text-column and --text-pair-column")
        elif pair is False and not self._called(TEXT_COLUMNS) and len(of_two := self._pairs(taken)) == 1:
            first, second = of_two[0]
            self.refuse(
                f"pairs of texts ({first!r} and {second!r}), and the model takes a single text: "
                "give data with one text a row, or --text-column to take one of them"
            )
        else:
            return {"text": self.by_convention("text", TEXT_COLUMNS, taken)}
        return {}

    def _find(self, name: str) -> str | None:
        if name in self._available:
            return name
        folded = self._called([name.strip().casefold()])
        return folded[0] if len(folded) == 1 else None

    def _called(self, names: Sequence[str]) -> list[str]:
        """The columns with one of ``names``, which are in lower case."""
        return [column for column in self._available if column.strip().casefold() in names]

    def _pairs(self, taken: AbstractSet[str]) -> list[tuple[str, str]]:
        found = []
        for names in PAIR_COLUMNS:
            first, second = map(self._find, names)
            if first is not None and second is not None and not taken & {first, second}:
                found.append((first, second))
        return found
