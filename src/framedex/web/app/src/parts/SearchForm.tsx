import type { Signal } from "@preact/signals";
import { TextField } from "./TextField";

interface Props {
  label: string;
  value: Signal<string>;
  /** The first row that the list below shows; another text begins the list anew. */
  offset: Signal<number>;
  maxLength: number;
}

/** A field that narrows the list below it while one types. */
export function SearchForm({ label, value, offset, maxLength }: Props) {
  return (
    <form
      class="inline"
      role="search"
      onSubmit={(event) => event.preventDefault()}
      onInput={() => {
        offset.value = 0;
      }}
    >
      <TextField label={label} value={value} type="search" maxLength={maxLength} />
    </form>
  );
}
