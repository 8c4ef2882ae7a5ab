"""A site that had its own apps, users and URLs before it embedded ours (docs/embedding.md)."""

from __future__ import annotations

import os

from psycopg.conninfo import conninfo_to_dict

SECRET_KEY = "only-for-tests-of-embedding-0123456789-0123456789"
DEBUG = False
ALLOWED_HOSTS = ["www.example.org"]

_database = conninfo_to_dict(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database["dbname"],
        "USER": _database.get("user", ""),
        "PASSWORD": _database.get("password", ""),
        "HOST": _database.get("host", ""),
        "PORT": _database.get("port", ""),
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
AUTH_USER_MODEL = "shop.Clerk"

INSTALLED_APPS = [
    "shop",
    "subscribers.apps.SubscribersConfig",
    "campaigns.apps.CampaignsConfig",
    "sending.apps.SendingConfig",
    "django.contrib.postgres",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
]
SENDONCE = {
    "BASE_URL": "https://www.example.org",
    "TRANSPORTS": {
        "default": {
            "BACKEND": "sending.smtp.EmailBackend",
            "OPTIONS": {"host": "127.0.0.1", "port": int(os.environ.get("RELAY_PORT", "25"))},
        },
        "files": {
            "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
            "OPTIONS": {"file_path": os.environ.get("MAIL_FOLDER", "mail")},
        },
    },
}

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
SECURE_SSL_REDIRECT = True
SECURE_REDIRECT_EXEMPT = [r"^mail/u/"]
SECURE_HSTS_SECONDS = 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True

ROOT_URLCONF = "urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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
STATIC_URL = "static/"
USE_TZ = True
TIME_ZONE = "Europe/Berlin"
