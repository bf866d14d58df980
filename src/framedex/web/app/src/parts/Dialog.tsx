import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { root } from "#host";
import { isFocusFree } from "../lib/focus";
import { t } from "../texts";

interface Props {
  title: string;
  children: ComponentChildren;
  onClose: () => void;
  wide?: boolean;
}

/** A modal dialog; the focus returns to where it was. */
export function Dialog({ title, children, onClose, wide = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before anything is painted, so that keys that are pressed at once go to the dialog.
  useLayoutEffect(() => {
    const element = dialog.current;
    const before = root.activeElement as HTMLElement | null;
    element?.showModal();
    element?.querySelector<HTMLElement>("[data-autofocus]")?.focus();
    return () => {
      element?.close();
      // Once the dialog is gone: while it is open nothing else can have the focus.
      setTimeout(() => {
        if (before?.isConnected && isFocusFree()) before.focus({ preventScroll: true });
      });
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "wide" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="button quiet" onClick={onClose} aria-label={t.close}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}
