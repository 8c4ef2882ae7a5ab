"""Findings stand where the tag or the link is, not where its letters come first."""

from __future__ import annotations

from campaigns.preflight.places import Place, find_tag, find_url


def test_a_field_is_its_tag_and_not_the_word() -> None:
    body = "Your city and {# city #} {{ capacity }} {{ city.name }}\n {{ first|default:city }}\n"
    assert find_tag({"body": body}, "city", "subject", "body") == Place("body", 2, 2)
    assert find_tag({"subject": "city", "body": "{{ city }}"}, "city", "subject", "body") == Place(
        "body", 1, 1
    )
    assert find_tag({"body": "{% if city %}x{% endif %}"}, "city", "body") == Place("body", 1, 1)
    assert find_tag({"body": "{{ city"}, "city", "body") == Place()


def test_a_link_is_where_it_stands_alone() -> None:
    body = '<p style="color:#fff">http://a.example/b</p>\n<a href="#">x</a><a href="http://a.example/">'
    assert find_url({"body": body}, "#", "body") == Place("body", 2, 10)
    assert find_url({"body": body}, "http://a.example/", "body") == Place("body", 2, 27)
    assert find_url({"body": "[a](http://b/)"}, "http://b/", "body") == Place("body", 1, 5)
    assert find_url({"body": "see http://b/x."}, "http://b/x", "body") == Place("body", 1, 5)
