"""Published protocols: one file each, composed of the other rooms' calls."""
