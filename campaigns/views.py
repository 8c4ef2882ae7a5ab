"""The pictures that messages show: public, cached for long, from whatever storage they are in."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_not_required
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseNotFound
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from django.views.decorators.http import require_safe

from .images import EXTENSIONS
from .models import Image

#: Seconds. What a URL shows never changes.
YEAR = 31_536_000
#: A picture that a browser is made to open as something else runs nothing and is nobody here.
POLICY = "default-src 'none'; sandbox"


@login_not_required
@require_safe
def image(request: HttpRequest, key: uuid.UUID, extension: str) -> HttpResponseBase:
    """An uploaded picture by its key. Sets no cookie and asks for none."""
    found = Image.objects.filter(key=key).first()
    if found is None or EXTENSIONS.get(found.content_type) != extension:
        return _not_found()
    etag, modified = f'"{found.sha256}"', int(found.created.timestamp())
    headers = {
        "Cache-Control": f"public, max-age={YEAR}, immutable",
        "ETag": etag,
        "Last-Modified": http_date(modified),
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        # Web versions and previews, wherever they are, show it.
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    told = HttpResponse(headers={**headers, "Content-Type": found.content_type})
    answer = get_conditional_response(request, etag=etag, last_modified=modified, response=told)
    if answer is not None and answer is not told:
        for name in ("Content-Security-Policy", "X-Content-Type-Options"):
            answer.headers.setdefault(name, headers[name])
        return answer
    told.headers["Content-Length"] = str(found.size)
    if request.method == "HEAD":
        return told
    try:
        file = found.file.storage.open(str(found.file.name))
    except FileNotFoundError:
        return _not_found()
    return FileResponse(
        file,
        content_type=found.content_type,
        headers={**headers, "Content-Length": str(found.size)},
    )


def _not_found() -> HttpResponse:
    response = HttpResponseNotFound("There is no such picture.\n", content_type="text/plain")
    # It may be on its way, on another machine's disk.
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
