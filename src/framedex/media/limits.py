"""Words about limits of the settings, for errors."""

RAISE_BYTES = "(FRAMEDEX_MAX_FILE_BYTES raises the limit)"
