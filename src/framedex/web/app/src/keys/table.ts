/** All keys of the app: help, palette, documentation and tests are made from this table. */

/** The parts of the app that have keys of their own; the innermost one that is open gets a key first. */
export const SCOPES = [
  "dialog",
  "viewer",
  "map",
  "grid",
  "duplicates",
  "labels",
  "issues",
  "clusters",
  "cleanup",
  "views",
  "notifications",
  "global",
] as const;
export type Scope = (typeof SCOPES)[number];

export interface Key {
  /** The name by which code and tests refer to the key. */
  id: string;
  scope: Scope;
  /**
   * The keys that do it, each as `Ctrl+Shift+z`, `ArrowLeft`, or `g o` for one after another. `Ctrl` stands for the
   * command key on a Mac, too. `Shift` is left out where it only makes another character.
   */
  keys: readonly string[];
  /** The words of the help. */
  text: string;
}

const row = (scope: Scope, id: string, keys: string, text: string): Key => ({
  id,
  scope,
  keys: keys.split(", "),
  text,
});

export const KEYS: readonly Key[] = [
  row("global", "help", "?", "Show the keys"),
  row("global", "palette", "Ctrl+k", "Open the list of commands"),
  row("global", "search", "/", "Search"),
  row("global", "filter", "f", "Add a filter"),
  row("global", "go.overview", "g o", "Go to the overview"),
  row("global", "go.pictures", "g p", "Go to the images"),
  row("global", "go.clusters", "g c", "Go to the clusters"),
  row("global", "go.map", "g m", "Go to the map"),
  row("global", "go.duplicates", "g d", "Go to the duplicates"),
  row("global", "go.labels", "g l", "Go to the labels"),
  row("global", "go.issues", "g i", "Go to the issues"),
  row("global", "go.cleanup", "g x", "Go to the clean-up"),
  row("global", "go.history", "g h", "Go to the history"),
  row("global", "go.views", "g v", "Go to the saved views"),
  row("global", "go.tasks", "g t", "Go to the tasks"),
  row("global", "go.notifications", "g n", "Go to the notifications"),
  row("global", "go.home", "g a", "Go to all datasets"),
  row("global", "go.account", "g y", "Go to your account"),
  row("global", "go.users", "g u", "Go to the users"),
  row("global", "go.admin", "g e", "Go to the settings and the audit of the service"),
  row("global", "share", "Shift+s", "Share the dataset"),
  row("global", "undo", "Ctrl+z", "Undo the last step"),
  row("global", "redo", "Ctrl+Shift+z", "Do the undone step again"),
  row("global", "inspector", "i", "Show or hide the details"),
  row("global", "copy", "y", "Copy what is shown as code"),
  row("global", "region", "F6", "Go to the next part of the page"),
  row("global", "escape", "Escape", "Close, or clear the selection or the last filter"),

  row("grid", "left", "ArrowLeft", "Previous image"),
  row("grid", "right", "ArrowRight", "Next image"),
  row("grid", "up", "ArrowUp", "Image above"),
  row("grid", "down", "ArrowDown", "Image below"),
  row("grid", "row.start", "Home", "First image of the row"),
  row("grid", "row.end", "End", "Last image of the row"),
  row("grid", "start", "Ctrl+Home", "First image"),
  row("grid", "end", "Ctrl+End", "Last image"),
  row("grid", "page.up", "PageUp", "One screen up"),
  row("grid", "page.down", "PageDown", "One screen down"),
  row("grid", "jump", "Ctrl+g", "Go to an image by its number"),
  row("grid", "select", "Space", "Select the image"),
  row("grid", "extend.left", "Shift+ArrowLeft", "Extend the selection to the left"),
  row("grid", "extend.right", "Shift+ArrowRight", "Extend the selection to the right"),
  row("grid", "extend.up", "Shift+ArrowUp", "Extend the selection upwards"),
  row("grid", "extend.down", "Shift+ArrowDown", "Extend the selection downwards"),
  row("grid", "select.all", "Ctrl+a", "Select all images of the view"),
  row("grid", "open", "Enter", "Open the image"),
  row("grid", "larger", "+, =", "Larger images"),
  row("grid", "smaller", "-", "Smaller images"),
  row("grid", "tag", "t", "Tag the selection"),
  row("grid", "tag.pinned", "1, 2, 3, 4, 5, 6, 7, 8, 9", "Give the selection one of the first nine tags"),
  row("grid", "label", "l", "Label the selection"),
  row("grid", "basket", "x", "Put the selection into the basket, or take it out"),
  row("grid", "similar", "s", "Find similar images"),
  row("grid", "cluster", "c", "Show the cluster of the image"),
  row("grid", "copies", "d", "Show the duplicates of the image"),
  row("grid", "boxes", "b", "Show or hide bounding boxes"),
  row("grid", "export", "e", "Export what is shown"),

  row("viewer", "previous", "ArrowLeft", "Previous image"),
  row("viewer", "next", "ArrowRight", "Next image"),
  row("viewer", "zoom", "z", "Zoom to full size, or fit the window"),
  row("viewer", "zoom.in", "+, =", "Zoom in"),
  row("viewer", "zoom.out", "-", "Zoom out"),
  row("viewer", "pan.left", "Shift+ArrowLeft", "Move the part that is shown to the left"),
  row("viewer", "pan.right", "Shift+ArrowRight", "Move the part that is shown to the right"),
  row("viewer", "pan.up", "Shift+ArrowUp", "Move the part that is shown upwards"),
  row("viewer", "pan.down", "Shift+ArrowDown", "Move the part that is shown downwards"),
  row("viewer", "boxes", "b", "Show or hide bounding boxes"),
  row("viewer", "box.previous", "[", "Previous bounding box"),
  row("viewer", "box.next", "]", "Next bounding box"),
  row("viewer", "draw", "r", "Draw a region; arrows move it, Shift and arrows size it, Enter searches"),
  row("viewer", "frame.previous", ",", "Previous frame"),
  row("viewer", "frame.next", ".", "Next frame"),
  row("viewer", "scene.previous", "<", "Previous scene"),
  row("viewer", "scene.next", ">", "Next scene"),
  row("viewer", "play", "Space", "Play the kept frames, or stop"),
  row("viewer", "tag", "t", "Tag the image"),
  row("viewer", "label", "l", "Label the image"),
  row("viewer", "caption", "w", "Write the caption"),
  row("viewer", "basket", "x", "Put the image into the basket, or take it out"),
  row("viewer", "similar", "s", "Find similar images"),
  row("viewer", "cluster", "c", "Show the cluster of the image"),
  row("viewer", "copies", "d", "Show the duplicates of the image"),
  row("viewer", "close", "Escape", "Back to the images"),

  row("duplicates", "next", "ArrowDown", "Next group"),
  row("duplicates", "previous", "ArrowUp", "Previous group"),
  row("duplicates", "member.next", "ArrowRight", "Next member"),
  row("duplicates", "member.previous", "ArrowLeft", "Previous member"),
  row("duplicates", "accept", "Enter", "Keep ★, put the others into the basket, and go on"),
  row("duplicates", "accept.all", "Shift+Enter", "Accept all groups of at least a confidence"),
  row("duplicates", "keep", "k", "Keep this member instead"),
  row("duplicates", "keep.all", "a", "Keep all: these are not duplicates"),
  row("duplicates", "not.two", "n", "This member and ★ are not duplicates"),
  row("duplicates", "flicker", "v", "Show this member and ★ in turn"),
  row("duplicates", "difference", "Shift+v", "Show the difference of this member and ★"),
  row("duplicates", "open", "o", "Open the member"),
  row("duplicates", "undo", "u", "Undo the last step"),

  row("labels", "next", "ArrowDown", "Next image"),
  row("labels", "previous", "ArrowUp", "Previous image"),
  row("labels", "accept", "Enter", "Take the suggested label and go on"),
  row("labels", "accept.all", "Shift+Enter", "Accept all suggestions of this kind of at least a confidence"),
  row("labels", "right", "Backspace", "The label is right: do not ask again"),
  row("labels", "choose", "1, 2, 3, 4, 5, 6, 7, 8, 9", "Take one of the offered labels"),
  row("labels", "other", "l", "Give another label"),
  row("labels", "ambiguous", "m", "Tag the image as ambiguous"),
  row("labels", "open", "o", "Open the image"),
  row("labels", "undo", "u", "Undo the last step"),

  row("issues", "next", "ArrowRight, ArrowDown", "Next image"),
  row("issues", "previous", "ArrowLeft, ArrowUp", "Previous image"),
  row("issues", "accept", "Enter", "Put the image into the basket and go on"),
  row("issues", "reject", "Backspace", "Not an issue: do not ask again"),
  row("issues", "limit", "j", "Move the limit with the arrows"),
  row("issues", "open", "o", "Open the image"),
  row("issues", "undo", "u", "Undo the last step"),

  row("clusters", "left", "ArrowLeft", "Previous cluster"),
  row("clusters", "right", "ArrowRight", "Next cluster"),
  row("clusters", "up", "ArrowUp", "Cluster above"),
  row("clusters", "down", "ArrowDown", "Cluster below"),
  row("clusters", "into", "Enter", "Into the cluster"),
  row("clusters", "out", "Backspace", "Out of the cluster"),
  row("clusters", "level", "0, 1, 2, 3, 4", "Show a level, 0 the finest"),
  row("clusters", "tag", "t", "Tag the members"),
  row("clusters", "label", "l", "Label the members"),
  row("clusters", "basket", "x", "Put the members into the basket"),
  row("clusters", "export", "e", "Export the members"),

  row("map", "left", "ArrowLeft", "Move the view, or the box, to the left"),
  row("map", "right", "ArrowRight", "Move the view, or the box, to the right"),
  row("map", "up", "ArrowUp", "Move the view, or the box, upwards"),
  row("map", "down", "ArrowDown", "Move the view, or the box, downwards"),
  row("map", "zoom.in", "+, =", "Zoom in"),
  row("map", "zoom.out", "-", "Zoom out"),
  row("map", "fit", "0", "Show all of the map"),
  row("map", "into", "Enter", "Zoom in: to the name that Tab has reached, or to the middle; with a box, filter by it"),
  row("map", "region", "o", "Draw a region: drag around images, or move a box by the arrows, and press Enter"),
  row("map", "size.left", "Shift+ArrowLeft", "Make the box narrower"),
  row("map", "size.right", "Shift+ArrowRight", "Make the box wider"),
  row("map", "size.up", "Shift+ArrowUp", "Make the box shorter"),
  row("map", "size.down", "Shift+ArrowDown", "Make the box taller"),

  row("cleanup", "apply", "Enter", "Apply the plan"),

  row("views", "next", "ArrowDown", "Next view"),
  row("views", "previous", "ArrowUp", "Previous view"),
  row("views", "export", "e", "Export what the view finds"),

  row("notifications", "next", "ArrowDown", "Next notification"),
  row("notifications", "previous", "ArrowUp", "Previous notification"),
  row("notifications", "read", "r", "Mark the notification as read"),
  row("notifications", "read.all", "Shift+r", "Mark all notifications as read"),

  row("dialog", "close", "Escape", "Close without a change"),
];

/** The permissions without which keys do nothing but say why. */
const NEEDS: Readonly<Record<string, string>> = {
  "global share": "dataset.share",
  "global undo": "dataset.edit",
  "global redo": "dataset.edit",
  "grid tag": "dataset.edit",
  "grid tag.pinned": "dataset.edit",
  "grid label": "dataset.edit",
  "grid basket": "dataset.edit",
  "grid export": "dataset.export",
  "viewer tag": "dataset.edit",
  "viewer label": "dataset.edit",
  "viewer caption": "dataset.edit",
  "viewer basket": "dataset.edit",
  "duplicates accept": "dataset.edit",
  "duplicates accept.all": "dataset.edit",
  "duplicates keep.all": "dataset.edit",
  "duplicates not.two": "dataset.edit",
  "duplicates undo": "dataset.edit",
  "labels accept": "dataset.edit",
  "labels accept.all": "dataset.edit",
  "labels right": "dataset.edit",
  "labels choose": "dataset.edit",
  "labels other": "dataset.edit",
  "labels ambiguous": "dataset.edit",
  "labels undo": "dataset.edit",
  "issues accept": "dataset.edit",
  "issues reject": "dataset.edit",
  "issues undo": "dataset.edit",
  "clusters tag": "dataset.edit",
  "clusters label": "dataset.edit",
  "clusters basket": "dataset.edit",
  "clusters export": "dataset.export",
  "cleanup apply": "dataset.edit",
  "views export": "dataset.export",
};

/** Return the permission that a key needs; null for none. */
export function permissionOf(key: Pick<Key, "scope" | "id">): string | null {
  return NEEDS[`${key.scope} ${key.id}`] ?? null;
}

/** The scopes of pages whose buttons have keys. */
const SCOPE_OF_PAGE: Readonly<Record<string, Scope>> = { pictures: "grid", m: "viewer" };

/** Return the permission that the key of a button needs, by the name of the key and that of the page. */
export function permissionOfHint(hint: string, page: string): string | null {
  const scope = SCOPE_OF_PAGE[page] ?? page;
  const key = KEYS.find((each) => each.scope === scope && keyNames(each).includes(hint));
  return key ? permissionOf(key) : null;
}

/** Return the keys of a row as they are written on a keyboard, for example `Ctrl Z`. */
export function keyNames(key: Key): string[] {
  const names: Record<string, string> = {
    ArrowLeft: "←",
    ArrowRight: "→",
    ArrowUp: "↑",
    ArrowDown: "↓",
    Escape: "Esc",
    PageUp: "Page Up",
    PageDown: "Page Down",
  };
  const one = (part: string): string => names[part] ?? (part.length === 1 ? part.toUpperCase() : part);
  const spelled = (text: string): string => (text === "+" ? "+" : text.split("+").map(one).join(" "));
  return key.keys.map((each) => each.split(" ").map(spelled).join(" "));
}
