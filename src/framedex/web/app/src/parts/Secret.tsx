import { useEffect, useId, useRef } from "preact/hooks";
import { say } from "../state/notices";
import { t } from "../texts";
import { Button } from "./Button";

/** A text that is to be copied; where the browser forbids copying it is selected, so that the user can. */
export function Secret({ label, text, first = false }: { label: string; text: string; first?: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const select = (): void => {
    input.current?.focus();
    input.current?.select();
  };
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      say(t.copy.copied);
    } catch {
      select();
    }
  };
  useEffect(() => {
    if (first) select();
  }, [text]);
  return (
    <>
      <label for={id}>{label}</label>
      <span class="secret">
        <input id={id} ref={input} readOnly value={text} class="code" />
        <Button onClick={() => void copy()}>{t.people.copy}</Button>
      </span>
    </>
  );
}
