"""Pictures judged against their originals: what reconstruction and super-resolution share."""
