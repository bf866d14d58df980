import type { ComponentChildren } from "preact";
import { permissionOfHint } from "../keys/table";
import { route } from "../router";
import { say } from "../state/notices";
import { type Permission, whyNot } from "../state/permissions";

interface Props {
  children: ComponentChildren;
  onClick?: () => void;
  kind?: "plain" | "main" | "danger" | "quiet";
  /** The keys that do the same, shown beside the words. */
  hint?: string;
  /** What the user must be allowed to do with the dataset; by default what the keys need. */
  needs?: Permission;
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
  needs,
  disabledReason,
  label,
  pressed,
  type = "button",
}: Props) {
  const permission = needs ?? (hint ? permissionOfHint(hint, route.value.page) : null);
  const reason = (permission && whyNot(permission as Permission)) ?? disabledReason;
  return (
    <button
      type={type}
      class={`button ${kind}`}
      onClick={(event) => {
        if (reason) {
          event.preventDefault();
          say(reason, "error");
        } else onClick?.();
      }}
      aria-disabled={reason ? "true" : undefined}
      title={reason || undefined}
      aria-label={label}
      aria-pressed={pressed}
    >
      {children}
      {hint && <kbd aria-hidden="true">{hint}</kbd>}
    </button>
  );
}
