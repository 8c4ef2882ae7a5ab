"""Django's PostgreSQL backend, which starts its server when it finds none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from .cluster import Cluster
from .errors import EmbeddedError


class DatabaseWrapper(base.DatabaseWrapper):
    """``OPTIONS["data_directory"]`` names the cluster; everything else is PostgreSQL's."""

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        if "data_directory" not in params:
            raise ImproperlyConfigured("config.embedded needs OPTIONS['data_directory'].")
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect; when that fails, see to the server and connect again.

        The first try costs nothing while the server runs. Raises ``OperationalError``.
        """
        params = dict(conn_params)
        cluster = Cluster(Path(params.pop("data_directory")))
        try:
            return super().get_new_connection(params)
        except psycopg.OperationalError:
            try:
                params["host"] = str(cluster.ensure())
            except EmbeddedError as error:
                raise OperationalError(str(error)) from error
            return super().get_new_connection(params)
