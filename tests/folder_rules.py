"""Changes of source folders, keepers and clean-ups, beside a model: further rules of a stateful test."""

import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from framedex import Conflict
from framedex.storage.table_names import KeeperMark
from tests import compared_datasets as compared
from tests.edit_rules import HOW, PLACES, SELECTION, EditRules, How, Selection, Session
from tests.image_files import encode
from tests.plain_dataset import FAMILIES, Folder, Media, PlainDataset, Row, State, fresh

FILES = 12
"""The number of files of a new folder."""
MOST_SNAPSHOTS = 5
PATH = st.sampled_from([*(f"{number}.png" for number in range(FILES)), "below/0.png", "below/x.png", "y.png"])
CHANGE = st.tuples(st.sampled_from(["put", "move", "move", "swap", "delete", "return"]), PATH, PATH)


@dataclass
class Comparison:
    """The differences between rows and the files of their folder; contents are unique.

    Attributes:
        moved: the new paths of rows whose content is at another place, by id.
        displaced: the rows at whose place a moved file is.
        gone: the rows without a file, and those displaced.
        back: the rows that were missing and have a file at their place again.
        changed: the rows whose file has another content, by path.
        new: the paths of further files.
        is_lost: whether no file of the folder is found.
    """

    moved: dict[str, str] = field(default_factory=dict)
    displaced: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    back: set[str] = field(default_factory=set)
    changed: dict[str, str] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    is_lost: bool = False

    @classmethod
    def of(cls, rows: Mapping[str, Row], files: Mapping[str, int]) -> "Comparison":
        """Compare rows with files."""
        media: dict[str, Media] = {each: row["media"] for each, row in rows.items()}
        placed = {each.uri: media_id for media_id, each in media.items() if each.is_placed}
        present = {media_id for uri, media_id in placed.items() if uri in files}
        found = {path: n for path, n in files.items() if path not in placed or media[placed[path]].number != n}
        absent = {each: media[each].number for each in media if each not in present or media[each].uri in found}
        path_of = {number: path for path, number in found.items()}
        made = cls({each: path_of[number] for each, number in absent.items() if number in path_of})
        made.displaced = {placed[path] for path in made.moved.values() if path in placed} - made.moved.keys()
        made.is_lost = bool(placed) and not present and not made.moved.keys() & set(placed.values())
        gone = media.keys() - present - made.moved.keys()
        made.gone = {each for each in gone if not (made.is_lost and media[each].is_placed)} | made.displaced
        stays = present - made.moved.keys() - made.displaced
        made.back = {each for each in stays if media[each].is_missing}
        rest = sorted(found.keys() - set(made.moved.values()))
        made.changed = {path: placed[path] for path in rest if placed.get(path) in stays}
        made.new = [path for path in rest if path not in made.changed]
        return made

    def applied(self, state: State) -> tuple[State, int]:
        """Return the state after the step of the rows, and the number of files that it changes."""
        after, n_files = deepcopy(state), 0
        for media_id, row in after.rows.items():
            before: Media = row["media"]
            if media_id in self.moved:
                row["media"] = Media(self.moved[media_id], before.number)
            elif media_id in self.gone:
                row["media"] = replace(
                    before, is_missing=True, is_placed=media_id not in self.displaced and before.is_placed
                )
            elif media_id in self.back:
                row["media"] = replace(before, is_missing=False)
            n_files += row["media"] != before or media_id in self.moved
        return after, n_files


class FolderRules(EditRules):
    """Edits, and changes of source folders, keepers and clean-ups.

    Attributes:
        home: the folder of all.
    """

    home: Path

    # Folders

    def new_folder(self) -> Folder:
        """Return a folder of some images."""
        folder = Folder(self.home / f"folder {next(self.numbers)}")
        (folder.path / "below").mkdir(parents=True)
        for number in range(FILES):
            self.put(folder, f"{number}.png", next(self.numbers))
        return folder

    @staticmethod
    def put(folder: Folder, path: str, number: int) -> None:
        """Write a content, of a time of its own, as files of one size and time count as the same."""
        (folder.path / path).write_bytes(encode(compared.pixels_of(number), "PNG"))
        os.utime(folder.path / path, (number, number))
        folder.files[path] = number

    @staticmethod
    def move(folder: Folder, path: str, other: str) -> None:
        """Rename a file."""
        (folder.path / path).replace(folder.path / other)
        folder.files[other] = folder.files.pop(path)

    def change(self, model: PlainDataset, kind: str, path: str, other: str) -> None:
        """Change a folder."""
        folder = model.folder
        assert folder is not None, "the dataset is of a folder"
        match kind:
            case "put":
                self.put(folder, path, next(self.numbers))
            case "return":
                used = folder.files.values()
                known = [row["media"].number for row in model.state.rows.values() if row["media"].number not in used]
                if known:
                    self.put(folder, path, known[0])
            case "delete" if path in folder.files:
                (folder.path / path).unlink()
                del folder.files[path]
            case "move" if path in folder.files:
                self.move(folder, path, other)
            case "swap" if path != other and {path, other} <= folder.files.keys():
                self.move(folder, path, "aside.png")
                self.move(folder, other, path)
                self.move(folder, "aside.png", other)

    def session_of_folder(self, how: How) -> Session | None:
        """Return a session of a dataset of a folder; None if there is none."""
        models = [each for each in self.models.values() if each.folder is not None]
        self.session(how)
        return Session(self.processes[how[2]], models[how[0] % len(models)], how[1]) if models else None

    @rule(how=HOW, changes=st.lists(CHANGE, max_size=4), remove=st.booleans())
    def sync(self, how: How, changes: list[tuple[str, str, str]], remove: bool) -> None:
        """Change files of a folder and compare: rows follow their contents; of a table no file is there to be found."""
        session = self.session_of_folder(how)
        if session is None:
            session = self.session(how)
            result = session.call("sync", apply=True)
            assert not any((result.new, result.changed, result.moved, result.missing))
            self.did("sync", session.model)
            return
        model, folder = session.model, session.model.folder
        assert folder is not None, "the dataset is of a folder"
        for change in changes:
            self.change(model, *change)
        found = Comparison.of(model.state.rows, folder.files)
        result = session.call("sync", apply=True, remove=remove)
        assert (result.new, result.changed, result.moved) == (len(found.new), len(found.changed), len(found.moved))
        assert (result.missing, result.back, bool(result.lost)) == (len(found.gone), len(found.back), found.is_lost)
        after, n_files = found.applied(model.state)
        if n_files:
            model.replace_state("sync", session.user, n_files, after)
        if remove and found.gone:
            after = deepcopy(model.state)
            after.rows = {each: row for each, row in after.rows.items() if each not in found.gone}
            model.replace_state("delete_media", session.user, len(found.gone), after)
        if found.new or found.changed:
            self.added_of(session, found, folder.files)
        self.did("sync with changes" if changes else "sync", model)

    @staticmethod
    def added_of(session: Session, found: Comparison, files: Mapping[str, int]) -> None:
        """Note the files that a comparison has added or read again: last rows, of which the changed ones keep ids."""
        rows = session.state.rows
        paths = [*found.changed, *found.new]
        shown = session.process.run(compared.read_media, session.name)[-len(paths) :]
        assert sorted(uri for _, uri in shown) == sorted(paths)
        new = {}
        for media_id, path in shown:
            media = Media(path, files[path])
            if path in found.changed:
                assert media_id == found.changed[path]
                new[media_id] = {**rows[media_id], "media": media}
            else:
                assert media_id not in rows
                new[media_id] = fresh(None, media)
        session.model.add_rows(new, partial=True, user=session.user)

    @rule(how=HOW, back=st.booleans())
    def relocate(self, how: How, back: bool) -> None:
        """Move a folder to another place, and back on request; no row changes.

        Where no dataset is of one, the folder of all tables is at another place, and back.
        """
        session = self.session_of_folder(how)
        if session is None:
            place = self.home / f"place {next(self.numbers)}"
            place.mkdir()
            if self.session(how).process.run(compared.relocate, place):
                self.did("relocate tables", *self.models.values())
            return
        folder = session.model.folder
        assert folder is not None, "the dataset is of a folder"
        old, new = folder.path, folder.path.with_name(f"folder {next(self.numbers)}")
        for place in (new, old) if back else (new,):
            self.move_folder(session, folder, place)

    def move_folder(self, session: Session, folder: Folder, place: Path) -> None:
        """Move a folder and tell the workspace, by force where too many of its files are others."""
        folder.path.rename(place)
        models = [each for each in self.models.values() if each.folder is folder]
        media = [row["media"] for each in models for row in each.state.rows.values() if row["media"].is_placed]
        missing = [each for each in media if each.uri not in folder.files]
        is_refused = 2 * len(missing) > len(media) or any(
            folder.files.get(each.uri, each.number) != each.number for each in media
        )
        if is_refused:
            with pytest.raises(Conflict):
                session.process.run(compared.relocate_folder, folder.path, place, False)
        session.process.run(compared.relocate_folder, folder.path, place, is_refused)
        folder.path = place
        self.did("relocate", *models)

    # Keepers and clean-ups

    @rule(how=HOW, selection=SELECTION, keep=st.booleans())
    def keep(self, how: How, selection: Selection, keep: bool) -> None:
        session = self.session(how)
        ids, selected = session.chosen(selection)
        operation = "keep" if keep else "unkeep"
        session.call(operation, selected)
        values = {"basket": False, "keeper": KeeperMark.CHOSEN} if keep else {"keeper": 0}
        self.mark(session, operation, dict.fromkeys(ids, values))

    @rule(how=HOW, places=PLACES)
    def keep_instead(self, how: How, places: list[int]) -> None:
        """Put media into the basket, and keep another one in their place."""
        session = self.session(how)
        ids, _ = session.chosen(places)
        if len(ids) > 1:
            session.call("basket.add", ids[1:], keep=ids[0])
            new: dict[str, Row] = {each: {"basket": True, "keeper": 0} for each in ids[1:]}
            self.mark(session, "basket", {**new, ids[0]: {"basket": False, "keeper": KeeperMark.CHOSEN}})

    def mark(self, session: Session, operation: str, new: Mapping[str, Row]) -> None:
        """Note an edit of marks, which is no step where it changes nothing."""
        rows = session.state.rows
        if any(rows[each][name] != value for each, values in new.items() for name, value in values.items()):
            session.model.edit(operation, session.user, new)
        else:
            session.model.commit()
        self.did(operation, session.model)

    @rule(how=HOW, places=PLACES, families=st.sets(st.integers(0, FAMILIES - 1), max_size=2), copies=st.booleans())
    def clean_up(self, how: How, places: list[int], families: set[int], copies: bool) -> None:
        """Remove the basket, with whole families, and on request copies; of each group one stays and is marked."""
        session = self.session(how)
        chosen, _ = session.chosen(places)
        ids = [each for each, row in session.state.rows.items() if each in chosen or row["media"].family in families]
        session.call("basket.add", ids)
        self.mark(session, "basket", {each: {"basket": True} for each in ids})
        options = {"basket": True, "duplicates": 0.96 if copies else None, "unsure": True}
        model, state = session.model, session.state
        if state.partial:
            self.refused(Conflict, session, "plan_cleanup", **options)
            return
        if len(model.snapshots) >= MOST_SNAPSHOTS:
            return
        removed = set(session.process.run(compared.clean_up, session.name, options))
        marks = session.process.run(compared.keepers, session.name)
        self.check_removed(state, removed, marks, copies=copies)
        if removed:
            after = deepcopy(state)
            after.rows = {
                each: {**row, "keeper": marks[each], "basket": row["basket"] and row["media"].is_missing}
                for each, row in after.rows.items()
                if each not in removed
            }
            model.keep_state(session.process.run(compared.newest_snapshot, session.name))
            model.replace_state("cleanup", session.user, len(removed), after)
        self.did("clean_up" if removed else "clean_up of nothing", model)

    @staticmethod
    def check_removed(state: State, removed: set[str], marks: Mapping[str, int], *, copies: bool) -> None:
        """Check what a clean-up has removed, and what it has marked in its place.

        A family is a group of copies, unless decisions divide it in some way.
        """
        families: dict[int, dict[str, Row]] = {}
        for media_id, row in state.rows.items():
            families.setdefault(row["media"].family, {})[media_id] = row
        for members in families.values():
            present = {each: row for each, row in members.items() if not row["media"].is_missing}
            free = [each for each, row in present.items() if row["keeper"] != KeeperMark.CHOSEN]
            is_group = copies and len(present) > 1
            named = {each for each in free if is_group or present[each]["basket"]}
            lost = removed & members.keys()
            before = {each: row["keeper"] for each, row in members.items() if each not in lost}
            fresh_marks = [each for each, mark in before.items() if marks[each] != mark]
            assert lost <= named
            assert all((before[each], marks[each]) == (0, KeeperMark.LAST) for each in fresh_marks)
            if any(len(members.keys() & set(each.media_ids)) > 1 for each in state.apart):
                continue
            if len(members) > 1:
                n_rescued = int(bool(named) and len(named) == len(present))
            else:
                n_rescued = sum(members[each]["keeper"] == KeeperMark.LAST for each in named)
            assert len(named) - len(lost) == n_rescued
            is_survived = bool(lost) and len(members) > 1
            assert len(fresh_marks) <= is_survived
            assert not is_survived or any(marks[each] for each in before)
