import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { closeDialog } from "../state/dialogs";
import { sayError } from "../state/notices";
import { t } from "../texts";
import { Dialog } from "./Dialog";

interface Props {
  title: string;
  label: string;
  initial?: string;
  /** Values that are offered while typing, once they have come. */
  offers?: Promise<readonly string[]>;
  type?: "text" | "number";
  max?: number;
  submit: string;
  onSubmit: (value: string) => void;
}

/** A dialog that asks for one text. */
export function Prompt({ title, label, initial = "", offers, type = "text", max, submit, onSubmit }: Props) {
  const value = useSignal(initial);
  const offered = useSignal<readonly string[]>([]);
  const id = useId();
  useEffect(() => {
    offers
      ?.then((found) => {
        offered.value = found;
      })
      .catch(sayError);
  }, []);
  return (
    <Dialog title={title} onClose={closeDialog}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          closeDialog();
          onSubmit(value.value.trim());
        }}
      >
        <label for={id}>{label}</label>
        <input
          id={id}
          data-autofocus
          type={type}
          min={type === "number" ? 1 : undefined}
          max={max}
          required
          list={offered.value.length ? `${id}-offers` : undefined}
          autocomplete="off"
          value={value.value}
          onInput={(event) => {
            value.value = event.currentTarget.value;
          }}
        />
        {offered.value.length > 0 && (
          <datalist id={`${id}-offers`}>
            {offered.value.map((offer) => (
              <option key={offer} value={offer} />
            ))}
          </datalist>
        )}
        <div class="form-end">
          <button type="button" class="button" onClick={closeDialog}>
            {t.cancel}
          </button>
          <button type="submit" class="button main">
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
