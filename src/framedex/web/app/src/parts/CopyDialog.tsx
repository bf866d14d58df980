import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { serviceUrl, workspaceFolder } from "#host";
import { codeOf, KINDS, type Kind, leavesOut, type Selected } from "../lib/code";
import { addressOf, dataset } from "../state/datasets";
import { closeDialog, openDialog } from "../state/dialogs";
import { say } from "../state/notices";
import { kept } from "../state/preferences";
import { shownQuery } from "../state/screen";
import { authIsOff } from "../state/session";
import { t } from "../texts";
import { Dialog } from "./Dialog";

const kind = kept<string>("copy-as", "python");

/** Open the dialog that copies what the present page shows. */
export function openCopy(): void {
  const found = dataset.peek();
  if (!found) return;
  const selected = {
    url: serviceUrl(),
    folder: workspaceFolder(),
    dataset: addressOf(found),
    datasetId: found.id,
    query: shownQuery(),
    needsLogin: !authIsOff.peek(),
  };
  openDialog(() => <CopyDialog selected={selected} />);
}

function CopyDialog({ selected }: { selected: Selected }) {
  const kinds = KINDS.filter((each) => each !== "curl" || selected.folder === null); // without a server
  const chosen = (kinds as readonly string[]).includes(kind.value) ? (kind.value as Kind) : "python";
  const area = useRef<HTMLTextAreaElement>(null);
  const mustSelect = useSignal(!navigator.clipboard);
  const id = useId();
  const text = codeOf(chosen, selected);
  const missing = leavesOut(chosen, selected.query);
  const select = (): void => {
    area.current?.focus();
    area.current?.select();
  };
  const copy = async (): Promise<void> => {
    if (mustSelect.peek()) return select();
    try {
      await navigator.clipboard.writeText(text);
      closeDialog();
      say(t.copy.copied);
    } catch {
      mustSelect.value = true; // a policy of the browser: then the user does it
      select();
    }
  };
  useEffect(() => {
    if (mustSelect.value) select();
  }, [mustSelect.value]);
  return (
    <Dialog title={t.copy.title} onClose={closeDialog} wide>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void copy();
        }}
      >
        <fieldset class="choices">
          <legend>{t.copy.as}</legend>
          {kinds.map((each) => (
            <label key={each}>
              <input
                type="radio"
                name={id}
                checked={each === chosen}
                data-autofocus={each === chosen ? true : undefined}
                onChange={() => {
                  kind.value = each;
                }}
              />
              {t.copy.kinds[each]}
            </label>
          ))}
        </fieldset>
        <textarea ref={area} class="code" readOnly rows={7} spellcheck={false} aria-label={t.copy.text} value={text} />
        {missing && <p class="hint">{missing === "search" ? t.copy.searchIsNoFilter : t.copy.orderIsNoPart}</p>}
        {mustSelect.value && <p role="status">{t.copy.byHand}</p>}
        <div class="form-end">
          <button type="button" class="button" onClick={closeDialog}>
            {t.cancel}
          </button>
          <button type="submit" class="button main">
            {mustSelect.value ? t.copy.select : t.copy.submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
