import { get } from "../api/http";
import type { DatasetStatus, Row, Tag } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { openDialog } from "../state/dialogs";
import { changeRows } from "../state/edits";
import { say, sayError } from "../state/notices";
import { focus, selection } from "../state/pictures";
import type { Results } from "../state/results";
import { t } from "../texts";
import { Button } from "./Button";
import { openExport } from "./ExportDialog";
import { Prompt } from "./Prompt";

/** The ids that an action is about: the selection, else the row with the focus; `all` for all results. */
export function targetsOf(results: Results): readonly string[] | "all" {
  if (selection.isAll.peek()) return "all";
  if (!selection.isEmpty.peek()) return selection.list;
  const row = results.row(focus.peek());
  if (row) return [row.media_id];
  say(t.pictures.stillLoading); // rows that the server has counted, and not sent yet
  return [];
}

function sizeOf(results: Results, targets: readonly string[] | "all"): number {
  return targets === "all" ? results.count : targets.length;
}

const withTag = (row: Row, tag: string): Row => ({ ...row, tags: [...new Set([...(row.tags ?? []), tag])] });
const withoutTag = (row: Row, tag: string): Row => ({ ...row, tags: (row.tags ?? []).filter((each) => each !== tag) });

/** Give the targets a tag, or take it away if all of them that are shown have it. */
export async function toggleTag(results: Results, tag: string, targets = targetsOf(results)): Promise<void> {
  if (targets.length === 0) return;
  const all = rowsOf(results, targets).every((row) => row?.tags?.includes(tag));
  const words = all ? t.edits.untagged(tag) : t.edits.tagged(tag);
  const preview = (row: Row): Row => (all ? withoutTag(row, tag) : withTag(row, tag));
  await changeRows(results, targets, { action: all ? "untag" : "tag", args: { tag }, words }, preview);
}

/** Put the targets into the basket, or take them out if all of them are in it. */
export async function toggleBasket(results: Results, targets = targetsOf(results)): Promise<void> {
  if (targets.length === 0) return;
  const all = rowsOf(results, targets).every((row) => row?.in_basket);
  const words = all ? t.edits.basketRemoved : t.edits.basketAdded;
  const preview = (row: Row): Row => ({ ...row, in_basket: !all });
  await changeRows(results, targets, { action: all ? "basket_remove" : "basket_add", words }, preview);
}

/** The rows of the targets; undefined for those that have not come, and for all results at once. */
function rowsOf(results: Results, targets: readonly string[] | "all"): (Row | undefined)[] {
  return targets === "all" ? [undefined] : targets.map((id) => results.find(id));
}

/** Give the targets labels in the place of those that they have. */
export async function setLabels(results: Results, targets: readonly string[] | "all", labels: string[]): Promise<void> {
  const words = t.edits.labelled(labels.join(", "));
  await changeRows(results, targets, { action: "set_labels", args: { labels }, words }, (row) => ({ ...row, labels }));
}

/** Ask for a tag and give it to the targets. */
export function askTag(results: Results, targets = targetsOf(results)): void {
  if (targets.length === 0) return;
  openDialog(() => (
    <Prompt
      title={t.actions.tagPrompt(sizeOf(results, targets))}
      label={t.actions.tagName}
      offers={tagNames(results.datasetId)}
      submit={t.actions.tag}
      onSubmit={(tag) => tag && void toggleTag(results, tag, targets)}
    />
  ));
}

/** The names of the tags of a dataset. */
export async function tagNames(datasetId: string): Promise<string[]> {
  return (await get<Tag[]>(`/dataset/${datasetId}/tags`)).map((tag) => tag.name);
}

/** The labels of a dataset, the most frequent first. */
export async function labelNames(datasetId: string): Promise<string[]> {
  return (await get<{ labels: { name: string }[] }>(`/dataset/${datasetId}/labels`)).labels.map((label) => label.name);
}

/** Ask for labels and give them to the targets. */
export function askLabels(results: Results, targets = targetsOf(results), present?: readonly string[]): void {
  if (targets.length === 0) return;
  const first = targets === "all" ? undefined : results.find(targets[0] ?? "");
  openDialog(() => (
    <Prompt
      title={t.actions.labelPrompt(sizeOf(results, targets))}
      label={t.actions.labelName}
      initial={(present ?? first?.labels ?? []).join(", ")}
      offers={labelNames(results.datasetId)}
      submit={t.actions.label}
      onSubmit={(text) => void setLabels(results, targets, parts(text))}
    />
  ));
}

const parts = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

async function givePinned(results: Results, pressed: string): Promise<void> {
  try {
    const tag = (await tagNames(results.datasetId))[Number(pressed) - 1];
    if (tag) await toggleTag(results, tag);
    else say(t.actions.noTag(pressed));
  } catch (error) {
    sayError(error);
  }
}

/** Open the dialog that exports the selected rows, or all that are shown. */
export function askExport(of: DatasetStatus, results: Results): void {
  const isSome = !selection.isEmpty.peek() && !selection.isAll.peek();
  const type = results.query.entity_type;
  const chosen = { ids: selection.list, ...(type ? { entity_type: type } : {}) };
  openExport(of, isSome ? chosen : results.query, isSome ? selection.list.length : results.count);
}

/** Why the rows cannot be edited; null if they can. */
const whyNoEdits = (results: Results): string | null =>
  results.entity.value === "OBJECTS" ? t.pictures.noEdits : null;

/** Handle the keys that change the selection. */
export function useSelectionKeys(results: Results): void {
  const edit =
    (act: (pressed: string) => unknown) =>
    (pressed: string): void => {
      const reason = whyNoEdits(results);
      if (reason) say(reason, "error");
      else act(pressed);
    };
  useKeys("grid", {
    tag: edit(() => askTag(results)),
    label: edit(() => askLabels(results)),
    basket: edit(() => toggleBasket(results)),
    "tag.pinned": edit((pressed) => givePinned(results, pressed)),
  });
}

/** What can be done with the selection. */
export function SelectionBar({ dataset: of, results }: { dataset: DatasetStatus; results: Results }) {
  if (selection.isEmpty.value) return null;
  const n = selection.count(results.count);
  const reason = whyNoEdits(results);
  return (
    <div class="selection-bar" role="toolbar" aria-label={t.pictures.selected(n)}>
      <strong>{t.pictures.selected(n)}</strong>
      <Button hint="T" disabledReason={reason} onClick={() => askTag(results)}>
        {t.actions.tag}
      </Button>
      <Button hint="L" disabledReason={reason} onClick={() => askLabels(results)}>
        {t.actions.label}
      </Button>
      <Button hint="X" disabledReason={reason} onClick={() => void toggleBasket(results)}>
        {t.actions.basket}
      </Button>
      <Button hint="E" onClick={() => askExport(of, results)}>
        {t.actions.export}
      </Button>
      <span class="grow" />
      <Button hint="Esc" kind="quiet" onClick={() => selection.clear()}>
        {t.pictures.unselect}
      </Button>
    </div>
  );
}
