import type { ComponentChildren } from "preact";

interface Props {
  children: ComponentChildren;
  onClick: () => void;
  kind?: "plain" | "main" | "danger" | "quiet";
  /** The keys that do the same, shown beside the words. */
  hint?: string;
  /** Why it cannot be used now; it stays reachable by keys, and says so. */
  disabledReason?: string | null | undefined;
  label?: string;
  pressed?: boolean;
  type?: "button" | "submit";
}

/** A button, with the key that does the same. */
export function Button({
  children,
  onClick,
  kind = "plain",
  hint,
  disabledReason,
  label,
  pressed,
  type = "button",
}: Props) {
  return (
    <button
      type={type}
      class={`button ${kind}`}
      onClick={() => !disabledReason && onClick()}
      aria-disabled={disabledReason ? "true" : undefined}
      title={disabledReason ?? undefined}
      aria-label={label}
      aria-pressed={pressed}
    >
      {children}
      {hint && <kbd aria-hidden="true">{hint}</kbd>}
    </button>
  );
}
