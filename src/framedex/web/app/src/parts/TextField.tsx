import type { Signal } from "@preact/signals";
import { useId } from "preact/hooks";

interface Props {
  label: string;
  value: Signal<string>;
  type?: "text" | "password" | "search";
  autocomplete?: string;
  required?: boolean;
  minLength?: number;
  maxLength?: number;
  /** Whether it gets the focus when its dialog opens. */
  first?: boolean;
}

/** A field for a line of text, with its label. */
export function TextField({
  label,
  value,
  type = "text",
  autocomplete = "off",
  required = false,
  minLength,
  maxLength = 255,
  first = false,
}: Props) {
  const id = useId();
  const kind = { type } as { type: "text" }; // the types of attributes know no union
  return (
    <>
      <label for={id}>{label}</label>
      <input
        id={id}
        {...kind}
        autocomplete={autocomplete}
        autocapitalize="none"
        spellcheck={false}
        required={required}
        minLength={minLength}
        maxLength={maxLength}
        data-autofocus={first || undefined}
        value={value.value}
        onInput={(event) => {
          value.value = event.currentTarget.value;
        }}
      />
    </>
  );
}
