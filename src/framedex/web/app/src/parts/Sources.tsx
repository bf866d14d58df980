import { useSignal } from "@preact/signals";
import { get, post } from "../api/http";
import type { DatasetStatus, Relocation, ResultsInfo, SourceState, SyncResult, VqlElement } from "../api/types";
import { filterText } from "../lib/vql";
import { pathOf } from "../router";
import { addressOf } from "../state/datasets";
import { closeDialog, openDialog } from "../state/dialogs";
import { say, sayError } from "../state/notices";
import { isAdmin } from "../state/session";
import { waitForTask } from "../state/tasks";
import { t } from "../texts";
import { sources as texts } from "../texts/sources";
import { Button } from "./Button";
import { Check } from "./Check";
import { Dialog } from "./Dialog";
import { Pending, useResource } from "./Resource";
import { TextField } from "./TextField";

const MISSING: VqlElement[] = [{ missing: { op: "is", value: true } }];
const KINDS = ["new", "changed", "moved", "missing", "back"] as const;
const MOST_LINES = 20;

/** The source folders of a dataset: which cannot be found, how many files are missing, and what differs in them. */
export function Sources({ dataset: of }: { dataset: DatasetStatus }) {
  const sources = useResource<SourceState[]>((signal) => get(`/dataset/${of.id}/sources`, {}, signal), [of.id]);
  const missing = useResource(
    () => post<ResultsInfo>(`/dataset/${of.id}/results`, { vql: MISSING }),
    [of.id, of.updated_at],
  );
  const found = useSignal<SyncResult | null>(null);
  const isBusy = useSignal(false);
  const compare = async (changes: Changes): Promise<void> => {
    isBusy.value = true;
    try {
      found.value = await post<SyncResult>(`/dataset/${of.id}/sync`, changes);
      if (found.value.task_id) await waitForTask(found.value.task_id);
      if (found.value.is_applied) {
        say(texts.applied);
        found.value = await post<SyncResult>(`/dataset/${of.id}/sync`, {});
        missing.reload();
      }
    } catch (error) {
      sayError(error);
    } finally {
      isBusy.value = false;
    }
  };
  if (!sources.value) return <Pending of={sources} />;
  if (sources.value.length === 0) return <p class="hint">{texts.uploads}</p>;
  const lost = sources.value.filter((each) => each.fault !== null);
  const f = filterText(MISSING)!;
  return (
    <>
      {lost.map((each) => (
        <div key={each.source} class="problem" role="alert">
          <p>{texts.lost(each.source, each.n_media, each.fault ?? "")}</p>
          {isAdmin.value ? (
            <Button kind="main" onClick={() => openDialog(() => <Relocate source={each} onDone={sources.reload} />)}>
              {texts.relocate}
            </Button>
          ) : (
            <p class="hint">{texts.askAdmin}</p>
          )}
        </div>
      ))}
      {missing.value && missing.value.count > 0 && (
        <p>
          <a href={pathOf(addressOf(of), "pictures", null, new URLSearchParams({ f }).toString())}>
            {texts.missing(missing.value.count)}
          </a>
        </p>
      )}
      <p>
        <Button needs="dataset.edit" disabledReason={isBusy.value ? texts.busy : null} onClick={() => void compare({})}>
          {texts.compare}
        </Button>
      </p>
      {found.value && <Differences found={found.value} isBusy={isBusy.value} onApply={compare} />}
    </>
  );
}

interface Changes {
  apply?: boolean;
  remove?: boolean;
  mark_lost?: boolean;
}
interface DifferencesProps {
  found: SyncResult;
  isBusy: boolean;
  onApply: (changes: Changes) => Promise<void>;
}

function Differences({ found, isBusy, onApply }: DifferencesProps) {
  const isRemoving = useSignal(false);
  const isMarking = useSignal(false);
  const total = KINDS.reduce((sum, kind) => sum + found[kind], 0);
  return (
    <section aria-labelledby="differences">
      <h3 id="differences">{texts.differences}</h3>
      {found.lost.map((each) => (
        <p key={each.source} class="problem" role="alert">
          {texts.lostFiles(each.source, each.files, each.reason)}
        </p>
      ))}
      {total === 0 && found.lost.length === 0 && <p role="status">{texts.nothing}</p>}
      {KINDS.filter((kind) => found[kind] > 0).map((kind) => (
        <details key={kind} open={found[kind] <= MOST_LINES}>
          <summary>{texts.kinds[kind](found[kind])}</summary>
          <ul class="notes">
            {(found.examples[kind] ?? []).slice(0, MOST_LINES).map((line) => (
              <li key={line} class="path">
                {line}
              </li>
            ))}
          </ul>
        </details>
      ))}
      <ul class="notes">
        {Object.entries(found.unreadable).map(([reason, count]) => (
          <li key={reason}>{texts.unreadable(count, reason)}</li>
        ))}
        {found.notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
      {found.lost.length > 0 && (
        <Check of={isMarking} words={texts.markLost(found.lost.reduce((sum, each) => sum + each.files, 0))} />
      )}
      {found.missing > 0 && <Check of={isRemoving} words={texts.remove(found.missing)} />}
      {(total > 0 || isMarking.value) && (
        <Button
          kind="main"
          needs="dataset.edit"
          disabledReason={isBusy ? texts.busy : null}
          onClick={() => void onApply({ apply: true, remove: isRemoving.value, mark_lost: isMarking.value })}
        >
          {texts.apply}
        </Button>
      )}
    </section>
  );
}

/** The dialog that tells where a source folder is now. */
export function Relocate({ source, onDone }: { source: SourceState; onDone: () => void }) {
  const place = useSignal(source.source);
  const found = useSignal<Relocation | null>(null);
  const checked = useSignal("");
  const isForced = useSignal(false);
  const isBusy = useSignal(false);
  const mayGoOn =
    found.value !== null && checked.value === place.value && (found.value.obstacle === null || isForced.value);
  const send = async (check: boolean): Promise<void> => {
    isBusy.value = true;
    try {
      const body = { old: source.source, new: place.value.trim(), check, force: isForced.value };
      found.value = await post<Relocation>("/admin/relocate", body);
      checked.value = place.value;
      if (found.value.is_done) {
        closeDialog();
        say(texts.relocated(found.value.after));
        onDone();
      }
    } catch (error) {
      sayError(error);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <Dialog title={texts.relocateTitle} onClose={closeDialog}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy.value) void send(!mayGoOn);
        }}
      >
        <p class="path">{texts.before(source.source)}</p>
        <TextField label={texts.now} value={place} maxLength={4096} required first />
        <p class="hint">{texts.relocateHint}</p>
        {found.value && (
          <div role="status">
            {found.value.roots.map((root) => (
              <p key={`${root.dataset_id} ${root.before}`}>
                {texts.compared(root.dataset_name, root.files, root.missing, root.different)}
              </p>
            ))}
            {found.value.obstacle && (
              <>
                <p class="problem">{found.value.obstacle}</p>
                <Check of={isForced} words={texts.force} />
              </>
            )}
          </div>
        )}
        <div class="form-end">
          <button type="button" class="button" onClick={closeDialog}>
            {t.cancel}
          </button>
          <button type="submit" class="button main">
            {mayGoOn ? texts.relocate : texts.check}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
