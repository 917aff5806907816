"""Published protocols: one file each, composed of calls of the other packages."""
