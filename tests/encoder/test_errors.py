import pytest

from encoder.errors import ConfigError, DataError, EncError, Problems, did_you_mean


def test_all_problems_are_shown_up_to_twenty() -> None:
    error = DataError.from_problems([f"problem {i}" for i in range(25)], title="file.csv")
    lines = str(error).splitlines()
    assert lines[0] == "file.csv" and lines[1] == "problem 0" and lines[20] == "problem 19"
    assert lines[-1] == "… and 5 more"
    assert isinstance(error, DataError) and isinstance(error, EncError)


def test_a_close_word_is_suggested_and_a_far_one_is_not() -> None:
    assert did_you_mean("pos ", ["neg", "pos"]) == "; did you mean 'pos'?"
    assert did_you_mean("SPAM", ["ham", "Spam"]) == "; did you mean 'Spam'?"
    assert did_you_mean("xyzzy", ["neg", "pos"]) == ""


def test_problems_are_told_together_and_keep_their_kind_where_they_share_it() -> None:
    problems = Problems()
    problems.tell()
    for error in (DataError("one"), DataError("one"), DataError("two")):
        with problems.collected():
            raise error
    with pytest.raises(DataError, match=r"^one\ntwo$"):
        problems.tell()
    with problems.collected():
        raise ConfigError("three")
    with pytest.raises(EncError, match=r"^one\ntwo\nthree$") as told:
        problems.tell()
    assert type(told.value) is EncError
