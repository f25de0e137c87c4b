"""The reason in another program's words."""

from tuneloom.errors import ModelError, in_short, reason_of


def test_lines_without_a_letter_or_digit_are_no_reason() -> None:
    assert in_short("a.cu(3): error: no such thing\n    x = y;\n      ^\n\n \0") == "x = y;"
    assert in_short("ptxas error: too much shared data\n\0\n") == "ptxas error: too much shared data"


def test_an_error_of_ours_is_told_without_its_name() -> None:
    assert in_short("Traceback …\ntuneloom.errors.ModelError: net has no input") == "net has no input"
    assert reason_of(ValueError("tuneloom.errors are bad")) == "tuneloom.errors are bad"


def test_an_error_without_words_is_told_by_its_name() -> None:
    assert reason_of(ModelError()) == "ModelError"
