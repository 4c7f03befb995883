"""Which columns hold the text, its pair and the label: by convention, or as the user says."""

from collections.abc import Sequence
from dataclasses import dataclass

from encoder.errors import DataError, did_you_mean

TEXT_COLUMNS = ("text", "sentence", "review", "content", "question", "document")
LABEL_COLUMNS = ("label", "labels", "class", "target", "intent", "sentiment", "category")
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
    problems: list[str] = []
    listing = f"the columns are: {', '.join(available)}"
    chosen = {}
    for role, name in (("text", text), ("text-pair", text_pair), ("label", label)):
        if name is not None:
            chosen[role] = _find(name, available)
            if chosen[role] is None:
                problems.append(
                    f"{where}: no column {name!r} (--{role}-column){did_you_mean(name, available)}"
                )
    if label is None and need_label:
        chosen["label"] = _by_convention(LABEL_COLUMNS, available, set(), "label", where, problems)
    if text is None:
        taken = {column for column in chosen.values() if column}
        pairs = [] if text_pair is not None or pair is False else _pairs(available, taken)
        if len(pairs) > 1:
            shown = "; ".join("/".join(columns) for columns in pairs)
            problems.append(
                f"{where}: more than one pair of texts ({shown}): "
                "choose with --text-column and --text-pair-column"
            )
        elif pairs:
            chosen["text"], chosen["text-pair"] = pairs[0]
        elif pair and text_pair is None:
            single = [column for column in available if column.strip().casefold() in TEXT_COLUMNS]
            has = f", and of texts there is only {single[0]!r}" if len(single) == 1 else ""
            problems.append(
                f"{where}: the model takes pairs of texts{has}: give --text-column and --text-pair-column"
            )
        elif pair is False and len(of_two := _pairs_of_no_single(available, taken)) == 1:
            first, second = of_two[0]
            problems.append(
                f"{where}: pairs of texts ({first!r} and {second!r}), and the model takes a single text: "
                "give data with one text a row, or --text-column to take one of them"
            )
        else:
            chosen["text"] = _by_convention(TEXT_COLUMNS, available, taken, "text", where, problems)
    elif pair and text_pair is None:
        problems.append(f"{where}: the model takes pairs of texts: give --text-pair-column too")
    if pair is False and text_pair is not None:
        problems.append(f"{where}: --text-pair-column {text_pair!r}: the model takes a single text")
    columns = [column for column in chosen.values() if column]
    if not problems and len(set(columns)) < len(columns):
        roles = ", ".join(f"{role} {column!r}" for role, column in chosen.items())
        problems.append(f"{where}: one column cannot be two things: {roles}")
    found_text = chosen.get("text")
    if problems or found_text is None:
        raise DataError.from_problems([*problems, listing])
    return Columns(found_text, chosen.get("text-pair"), chosen.get("label"))


def _find(name: str, available: Sequence[str]) -> str | None:
    if name in available:
        return name
    folded = [column for column in available if column.strip().casefold() == name.strip().casefold()]
    return folded[0] if len(folded) == 1 else None


def _pairs(available: Sequence[str], taken: set[str]) -> list[tuple[str, str]]:
    found = []
    for first, second in PAIR_COLUMNS:
        columns = (_find(first, available), _find(second, available))
        if columns[0] is not None and columns[1] is not None and not taken & set(columns):
            found.append((columns[0], columns[1]))
    return found


def _pairs_of_no_single(available: Sequence[str], taken: set[str]) -> list[tuple[str, str]]:
    """The pairs of columns, where no column holds a single text by its name."""
    if any(column.strip().casefold() in TEXT_COLUMNS for column in available):
        return []
    return _pairs(available, taken)


def _by_convention(
    names: Sequence[str],
    available: Sequence[str],
    taken: set[str],
    role: str,
    where: str,
    problems: list[str],
) -> str | None:
    found = [column for column in available if column.strip().casefold() in names and column not in taken]
    if len(found) == 1:
        return found[0]
    if found:
        problems.append(
            f"{where}: {' and '.join(map(repr, found))} could each be the {role}: choose with --{role}-column"
        )
    else:
        problems.append(
            f"{where}: no column is called {', '.join(names)}: name the {role} with --{role}-column, "
            "or add the header line if it is missing"
        )
    return None
