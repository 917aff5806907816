"""The documentation as a site: pages of ``docs/``, plugins, the reference, the demonstration."""
