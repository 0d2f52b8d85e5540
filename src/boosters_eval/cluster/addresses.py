"""Where the scheduler of a cluster is, and whether there are certificates to reach it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask
from distributed import Security

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import read_text
from boosters_eval.core.terms import the

_LAST_PORT = 65535
ENCRYPTED = ("tls://", "wss://")
_CERTIFICATES = (
    "set distributed.comm.tls.ca-file, distributed.comm.tls.client.cert and distributed.comm.tls.client.key"
    " in dask's configuration"
)


def scheduler_address(address: str | None, scheduler_file: str | Path | None, client: Any) -> str | None:
    """Where the scheduler is, as the user or dask's own configuration names it; None: nowhere yet."""
    if client is not None:
        return str(client.scheduler.address)
    if scheduler_file is not None:
        path = Path(scheduler_file)
        try:
            found = json.loads(read_text(path))["address"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"The scheduler file {path} is not one that a dask scheduler writes.") from None
        address = str(found)
        if not _looks_right(address):
            raise ConfigError(f"The scheduler file {path} has no address of a dask scheduler, but '{address}'.")
    if address is not None:
        return _checked(address, the("address"))
    configured = dask.config.get("scheduler-address", None)
    return None if configured is None else _checked(configured, "The 'scheduler-address' of dask's configuration")


def _checked(address: object, source: str) -> str:
    if not isinstance(address, str) or not _looks_right(address):
        raise ConfigError(
            f"{source} must be that of a dask scheduler, such as tcp://host:8786. Got {address!r} instead."
        )
    return address


def check_certificates(address: str, security: Any) -> None:
    """Refuse an address whose certificates are not there. `security` is dask's, or its configuration counts."""
    found = security or Security()
    if not isinstance(found, Security):  # whatever else dask accepts
        return
    try:
        context = found.get_connection_args("client").get("ssl_context")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"The certificates for {address} cannot be used ({reason}): {_CERTIFICATES}.") from None
    if context is None and address.startswith(ENCRYPTED):
        raise ConfigError(f"The address {address} needs certificates: {_CERTIFICATES}.")


def _looks_right(address: str) -> bool:
    scheme, found, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    known = not found or scheme in {"tcp", "tls", "ws", "wss", "ucx"}
    return known and bool(host) and port.isdecimal() and len(port) <= len(str(_LAST_PORT)) and int(port) <= _LAST_PORT
