interface Props {
  /** The signal that it switches. */
  of: { value: boolean };
  words: string;
}

/** A line with a box to check. */
export function Check({ of, words }: Props) {
  return (
    <label class="check-line">
      <input
        type="checkbox"
        checked={of.value}
        onChange={(event) => {
          of.value = event.currentTarget.checked;
        }}
      />
      {words}
    </label>
  );
}
