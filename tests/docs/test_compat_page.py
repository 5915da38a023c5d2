"""`docs/compat.md` says what the tables of the dialects say."""

from tools import compat_page


def test_the_page_is_the_one_that_the_tables_make() -> None:
    assert compat_page.PAGE.read_text("utf-8") == compat_page.page(), "make docs writes it anew"


def test_every_trait_stands_on_the_page() -> None:
    page = compat_page.page()
    fields = {trait.field for _, _, traits in compat_page.PARTS for trait in traits} - {"*"}
    assert [field for field in fields if f"`{field}`" not in page] == []


def test_every_operation_that_takes_a_body_has_its_fields_on_the_page() -> None:
    for _, dialect, traits in compat_page.PARTS:
        with_body = {f"{each.method} {each.path}" for each in dialect.operations if each.body is not None}
        assert with_body <= {trait.operation for trait in traits}
