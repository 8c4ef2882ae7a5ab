"""Settings of the runnable project: the only reader of the environment.

| variable | default |
| --- | --- |
| ``DATABASE_URL`` | an embedded PostgreSQL in ``var/postgres`` |
| ``EMAIL_URL`` | ``smtp://127.0.0.1:2525`` |
| ``DEBUG`` | ``false`` |
| ``SECRET_KEY`` | required; with ``DEBUG`` one is made and kept in ``var/secret_key`` |
| ``ALLOWED_HOSTS`` | the host of ``SENDONCE_BASE_URL``, and loopback |
| ``SENDONCE_BASE_URL`` | ``http://127.0.0.1:8000`` |
| ``ANYMAIL`` | ``{}``; a JSON object, the settings of django-anymail: a provider's keys |
| ``ANYMAIL_WEBHOOK_SECRET`` | none, webhooks are refused; ``name:password`` |
| ``SENDONCE_<KEY>`` | any other key of ``subscribers.conf.Conf``, JSON where it is structured |
| ``BEHIND_PROXY`` | ``false``; true: trust ``X-Forwarded-Proto``, which the proxy must always set |
| ``SECURE_SSL_REDIRECT`` | ``false`` |
| ``SECURE_HSTS_SECONDS`` | an hour with an https ``SENDONCE_BASE_URL``, else 0 |
| ``STATIC_ROOT`` | none: files are served from the packages |
| ``LOG_LEVEL`` | ``INFO`` |
| ``DEMO_SERVE`` | whether ``demo`` ends by serving the site; default: on a terminal |

``SENDONCE_TRANSPORTS`` replaces what ``EMAIL_URL`` says, alias by alias.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import django
import environ

from config import embedded, environment

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

env = environ.Env()

DEBUG: bool = env.bool("DEBUG", default=False)
SECRET_KEY: str = env.str("SECRET_KEY", default="")
if DEBUG and not SECRET_KEY:
    SECRET_KEY = environment.kept_secret_key(VAR_DIR / "secret_key")
SECRET_KEY = environment.required_secret_key(SECRET_KEY)

# --- Database -------------------------------------------------------------------------------

_database_url: str = env.str("DATABASE_URL", default="")
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **(
            environment.database_settings(_database_url)
            if _database_url
            else embedded.database_settings(VAR_DIR / "postgres")
        ),
        "CONN_HEALTH_CHECKS": True,
        # A hand-over must commit before the network is used; one transaction per request, held
        # open by a view, would be the opposite.
        "ATOMIC_REQUESTS": False,
    }
}
DATABASES["default"].setdefault("CONN_MAX_AGE", 60)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Sendonce and mail ----------------------------------------------------------------------

_email_transport = environment.transport_settings(
    env.str("EMAIL_URL", default="") or "smtp://127.0.0.1:2525"
)
SENDONCE: dict[str, Any] = {
    "BASE_URL": "http://127.0.0.1:8000",
    # No pooler stands before a server of our own.
    "DIRECT_CONNECTION": not _database_url,
    **environment.sendonce_settings(env.ENVIRON),
}
SENDONCE["BASE_URL"] = SENDONCE["BASE_URL"].rstrip("/")
SENDONCE["TRANSPORTS"] = {"default": _email_transport, **SENDONCE.get("TRANSPORTS", {})}
globals().update(
    environment.django_mail_settings(_email_transport, mailers=django.VERSION >= (6, 1))
)

# Providers other than SMTP, and their webhooks, come with django-anymail, an optional package.
_has_anymail = find_spec("anymail") is not None
ANYMAIL: dict[str, Any] = environment.anymail_settings(
    env.str("ANYMAIL", default=""), env.str("ANYMAIL_WEBHOOK_SECRET", default="")
)

# --- Web ------------------------------------------------------------------------------------

_base_host = environment.base_url_host(SENDONCE["BASE_URL"])
_is_https = SENDONCE["BASE_URL"].startswith("https:")
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=[]) or sorted(
    {_base_host, "localhost", "127.0.0.1", "[::1]"}
)
CSRF_TRUSTED_ORIGINS = [SENDONCE["BASE_URL"]] if _is_https else []

INSTALLED_APPS = [
    "subscribers.apps.SubscribersConfig",
    "campaigns.apps.CampaignsConfig",
    "sending.apps.SendingConfig",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    # One static server in development and in production.
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    *(["anymail"] if _has_anymail else []),
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.security.ContentSecurityPolicyMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "admin:login"

STATIC_URL = "static/"
# Served straight from the packages: no build step to forget. For a web server that serves the
# files itself, STATIC_ROOT names the directory that ``collectstatic`` fills.
STATIC_ROOT: str | None = env.str("STATIC_ROOT", default="") or None
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
# Uploaded pictures, where no other storage is set. A view of ours serves them.
MEDIA_ROOT = VAR_DIR / "media"

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _is_https
SESSION_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=False)
# A one-click unsubscribe is never redirected (RFC 8058).
SECURE_REDIRECT_EXEMPT = [r"^u/"]
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=3600 if _is_https else 0)
X_FRAME_OPTIONS = "DENY"
# A provider puts up to a thousand events into one request; what is larger is refused, and lost.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
if env.bool("BEHIND_PROXY", default=False):
    # Only when a proxy sets this header on every request: whoever reaches us directly could
    # otherwise claim to speak HTTPS.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- Demo -----------------------------------------------------------------------------------

# ``demo`` leaves the site running: true or false; None: when it has a terminal.
DEMO_SERVE: bool | None = env.bool("DEMO_SERVE") if env.str("DEMO_SERVE", default="") else None

# --- Language and time ----------------------------------------------------------------------

LANGUAGE_CODE = "en"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# --- Logging --------------------------------------------------------------------------------

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "format": "{asctime} {levelname} {name} {message}",
            "style": "{",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
}
