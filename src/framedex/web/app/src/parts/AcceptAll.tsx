import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { ApiError, get } from "../api/http";
import type { Row } from "../api/types";
import { closeDialog } from "../state/dialogs";
import { t } from "../texts";
import { Dialog } from "./Dialog";
import { THUMB_COLUMNS, Thumb } from "./Thumb";

const PREVIEWS = 12;
const WAIT_MS = 150;

/** What would be done at a confidence: the results whose rows change, and its words. */
export interface Proposal {
  rid: string;
  count: number;
  generation: string;
  words: string;
}

interface Props {
  title: string;
  datasetId: string;
  /** The confidence to begin with. */
  initial: string;
  /** The words of a switch that widens what is done; without them there is none. */
  option?: string;
  read: (confidence: number, signal: AbortSignal, isWide: boolean) => Promise<Proposal>;
  submit: (n: number) => string;
  onAccept: (proposal: Proposal) => void;
}

/** A dialog that asks for a confidence, and shows what would be done before it is done. */
export function AcceptAll({ title, datasetId, initial, option, read, submit, onAccept }: Props) {
  const confidence = useSignal(initial);
  const isWide = useSignal(false);
  const proposal = useSignal<Proposal | null>(null);
  const rows = useSignal<readonly Row[]>([]);
  const problem = useSignal("");
  const id = useId();
  useEffect(() => {
    const abort = new AbortController();
    proposal.value = null;
    const timer = setTimeout(() => void preview(abort.signal), WAIT_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [confidence.value, isWide.value]);
  const preview = async (signal: AbortSignal): Promise<void> => {
    const value = Number(confidence.peek());
    if (confidence.peek() === "" || !(value >= 0 && value <= 1)) return;
    try {
      const found = await read(value, signal, isWide.peek());
      const path = `/dataset/${datasetId}/results/${found.rid}/rows`;
      const page = await get<{ rows: Row[] }>(path, { limit: PREVIEWS, columns: THUMB_COLUMNS }, signal);
      if (signal.aborted) return;
      rows.value = page.rows;
      proposal.value = found;
      problem.value = "";
    } catch (error) {
      if (!signal.aborted) problem.value = error instanceof ApiError ? error.message : String(error);
    }
  };
  const accept = (event: Event): void => {
    event.preventDefault();
    const found = proposal.peek();
    if (!found?.count) return;
    closeDialog();
    onAccept(found);
  };
  return (
    <Dialog title={title} onClose={closeDialog}>
      <form class="form" onSubmit={accept}>
        <label for={id}>{t.acceptAll.confidence}</label>
        <input
          id={id}
          type="number"
          data-autofocus
          required
          min={0}
          max={1}
          step="any"
          value={confidence.value}
          onInput={(event) => {
            confidence.value = event.currentTarget.value;
          }}
        />
        {option && (
          <label class="check-line">
            <input
              type="checkbox"
              checked={isWide.value}
              onChange={(event) => {
                isWide.value = event.currentTarget.checked;
              }}
            />
            {option}
          </label>
        )}
        <p role="status">{proposal.value?.words ?? t.loading}</p>
        {problem.value && (
          <p class="problem" role="alert">
            {problem.value}
          </p>
        )}
        {proposal.value && (
          <ul class="previews">
            {rows.value.map((row) => (
              <li key={row.media_id}>
                <Thumb datasetId={datasetId} row={row} size={96} alt={row.image_filename} />
              </li>
            ))}
          </ul>
        )}
        <div class="form-end">
          <button type="button" class="button" onClick={closeDialog}>
            {t.cancel}
          </button>
          <button type="submit" class="button main" aria-disabled={!proposal.value?.count}>
            {submit(proposal.value?.count ?? 0)}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
