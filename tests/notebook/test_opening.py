"""Opening the app: arguments, and what is missing."""

from pathlib import Path

import pytest

from framedex import InvalidInput, MissingDependency, NotFound, Unavailable, Workspace
from framedex.web import BUILD_HINT, AppPages
from tests.extras import missing
from tests.gallery import SETTINGS, Gallery, make_gallery
from tests.prepared import prepared

BUILT = pytest.mark.skipif(not AppPages().exist, reason=BUILD_HINT)


@pytest.mark.parametrize("height", [0, -1, 10_001, 1.5, "600", True, None])
def test_height__out_of_range(gallery: Gallery, height: object) -> None:
    """A height that is no integer from 1 to 10,000 is refused, by datasets and views."""
    for app in (gallery.dataset.app, gallery.dataset.view.app):
        with pytest.raises(InvalidInput, match="height"):
            app(height)  # type: ignore[arg-type] # what users may pass


@pytest.mark.parametrize("mode", ["", "iframe", None, 3])
def test_mode__unknown(gallery: Gallery, mode: object) -> None:
    """The error names the modes."""
    with pytest.raises(InvalidInput, match="'widget' or 'server'"):
        gallery.dataset.app(mode=mode)  # type: ignore[arg-type] # what users may pass


@BUILT
@pytest.mark.parametrize(("mode", "package"), [("widget", "anywidget"), ("server", "uvicorn")])
def test_extra__is_missing(gallery: Gallery, mode: str, package: str) -> None:
    """Without a package of the extra the error names both; the static page stays."""
    importing = ("framedex.notebook.", "framedex.service.background", "framedex.service.server")
    with missing(package, again=importing), pytest.raises(MissingDependency, match=rf"{package}.*framedex\[notebook\]"):
        gallery.dataset.app(mode=mode)
    assert "<img" in gallery.dataset._repr_html_()


def test_app__was_not_built(gallery: Gallery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the built app the error says how it is built."""
    monkeypatch.setattr("framedex.notebook.opening.AppPages", lambda: AppPages(tmp_path))
    with pytest.raises(Unavailable, match="hatch_build"):
        gallery.dataset.app()


@pytest.mark.slow
@BUILT
def test_dataset__was_deleted(tmp_path: Path) -> None:
    """A dataset that was deleted has no app."""
    make_gallery(tmp_path / "gallery")
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = prepared(workspace, "pets", tmp_path / "gallery")
        workspace.delete_dataset("pets")
        with pytest.raises(NotFound):
            dataset.app()
