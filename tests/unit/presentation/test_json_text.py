import pytest

from wfapp.presentation import json_text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        '{"a": ',
        '{"a":1,"a":2}',
        "NaN",
        "[Infinity]",
        "1e999",
        "-1e999",
        '"\\ud800"',
        '{"\\udfff": 1}',
        "1" * 5000,
        "[" * 257 + "]" * 257,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 2000 + "1" + "}" * 2000,
        "{} tail",
    ],
)
def test_what_readers_would_take_differently_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        json_text.read(text)


def test_what_is_nested_as_deep_as_allowed_is_read_and_written() -> None:
    text = "[" * json_text.DEPTH + "]" * json_text.DEPTH
    assert json_text.write(json_text.read(text)) == text.encode()


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert len(json_text.read("[" + "[]," * 1000 + "[]]")) == 1001


def test_whole_characters_beyond_the_first_plane_are_read() -> None:
    assert json_text.read('"\\ud83d\\ude00"') == "😀"


def test_it_is_compact_or_indented() -> None:
    assert json_text.write({"ü": [1, 2]}) == '{"ü":[1,2]}'.encode()
    assert json_text.write({"a": 1}, pretty=True) == b'{\n  "a": 1\n}'
