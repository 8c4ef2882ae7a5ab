"""One person's address in texts: found as a whole, in every spelling, and nobody else's."""

from __future__ import annotations

import pytest

from subscribers.rights.person_address import PersonAddress


@pytest.mark.parametrize(
    "text",
    [
        "ann@example.org",
        " Ann@EXAMPLE.org ",
        "<ann@example.org>",
        "mailto:ann@example.org?subject=x",
        "550 no such user: ann@example.org.",
        '["ann@example.org", 1]',
        "a,ann@example.org;b",
    ],
)
def test_an_address_is_found(text: str) -> None:
    address = PersonAddress("Ann@Example.ORG")
    assert address.is_in(text)
    assert not address.is_in(address.cut_out(text))


@pytest.mark.parametrize(
    "text",
    [
        "joann@example.org",
        "jo.ann@example.org",
        "jo+ann@example.org",
        "ann@example.org.uk",
        "ann@example.organic",
        "ann@example.org-shop.example",
        "ann at example.org",
        "",
    ],
)
def test_another_address_is_another(text: str) -> None:
    address = PersonAddress("ann@example.org")
    assert not address.is_in(text)
    assert address.cut_out(text) == text


def test_both_scripts_of_a_domain_are_one_address() -> None:
    for spelt in ("ann@münchen.example", "ann@xn--mnchen-3ya.example"):
        assert PersonAddress(spelt).forms >= {"ann@xn--mnchen-3ya.example"}
        assert PersonAddress(spelt).is_in("to ann@münchen.example, or")


def test_plain_data_is_searched_and_cut_all_through() -> None:
    address = PersonAddress("ann@example.org")
    data = {"ann@example.org": [1, None, {"x": "Ann@example.org!"}], "b": True}
    assert address.is_in(data)
    assert address.cut_out(data) == {"(address)": [1, None, {"x": "(address)!"}], "b": True}
    assert not address.is_in({"b": [1, "bob@example.org"]})


def test_the_rest_of_a_row_goes_with_the_address() -> None:
    address = PersonAddress("ann@example.org")
    data = {"header": ["email", "city"], "rows": [["ANN@example.org", "Ulm"], ["b@x.org", "Bonn"]]}
    assert address.without_rows(data) == {
        "header": ["email", "city"],
        "rows": [["", ""], ["b@x.org", "Bonn"]],
    }


@pytest.mark.parametrize("text", ["", " ", "\u200b", "a\0@example.org"])
def test_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        PersonAddress(text)
