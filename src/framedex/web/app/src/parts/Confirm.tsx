import type { ComponentChildren } from "preact";
import { closeDialog } from "../state/dialogs";
import { t } from "../texts";
import { Button } from "./Button";
import { Dialog } from "./Dialog";

interface ConfirmProps {
  title: string;
  text: string;
  submit: string;
  onConfirm: () => void;
  children?: ComponentChildren;
}

/** A dialog that asks whether something is meant. */
export function Confirm({ title, text, submit, onConfirm, children }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={closeDialog}>
      {text && <p>{text}</p>}
      {children}
      <div class="form-end">
        <Button onClick={closeDialog}>{t.cancel}</Button>
        <button
          type="button"
          class="button danger"
          data-autofocus
          onClick={() => {
            closeDialog();
            onConfirm();
          }}
        >
          {submit}
        </button>
      </div>
    </Dialog>
  );
}
