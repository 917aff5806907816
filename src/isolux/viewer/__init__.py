"""The viewer: one page in which a run is explored, as a file that travels or from a local server.

``coding`` numbers a run's models, metrics and attributes; ``tables`` and ``distributions`` make the
small tables that the page reads; ``manifest`` its words; ``page`` puts all of it into
``page.html``, which `make viewer` builds from the sources in ``viewer/`` at the repository's root.
"""

from isolux.viewer.contents import Contents, Shown, contents_of
from isolux.viewer.page import BUNDLE_LIMIT_MB, bundle
from isolux.viewer.server import Pictures, Site, serve

__all__ = [
    "BUNDLE_LIMIT_MB",
    "Contents",
    "Pictures",
    "Shown",
    "Site",
    "bundle",
    "contents_of",
    "serve",
]
