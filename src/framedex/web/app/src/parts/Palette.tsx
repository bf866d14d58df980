import { useComputed, useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { handledKeys, perform } from "../keys/dispatcher";
import { keyNames } from "../keys/table";
import { navigate, pathOf } from "../router";
import { addressOf, datasets } from "../state/datasets";
import { closeDialog } from "../state/dialogs";
import { t } from "../texts";
import { Dialog } from "./Dialog";

interface Command {
  id: string;
  words: string;
  hint: string;
  run: () => void;
}
const MOST = 12;

function commands(): Command[] {
  const keys = handledKeys()
    .filter((key) => !["palette", "escape", "close"].includes(key.id))
    .map((key) => ({
      id: `${key.scope} ${key.id}`,
      words: key.text,
      hint: keyNames(key)[0] ?? "",
      run: () => void perform(key),
    }));
  const places = (datasets.value ?? []).map((each) => ({
    id: each.id,
    words: each.display_name,
    hint: t.navigation.overview,
    run: () => navigate(pathOf(addressOf(each))),
  }));
  return [...keys, ...places];
}

/** A list of all commands that can be used now, and of the datasets; typing narrows it. */
export function Palette() {
  const text = useSignal("");
  const chosen = useSignal(0);
  const all = useSignal(commands());
  const id = useId();
  const found = useComputed(() => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    return all.value.filter((each) => words.every((word) => each.words.toLowerCase().includes(word))).slice(0, MOST);
  });
  const run = (command: Command | undefined): void => {
    if (!command) return;
    closeDialog();
    queueMicrotask(command.run);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      const n = found.value.length || 1;
      chosen.value = (chosen.value + step + n) % n;
    }
    if (event.key === "Enter") {
      event.preventDefault();
      run(found.value[chosen.value]);
    }
  };
  return (
    <Dialog title={t.palette.title} onClose={closeDialog}>
      <input
        type="text"
        role="combobox"
        data-autofocus
        aria-label={t.palette.placeholder}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.value.length ? `${id}-${chosen.value}` : undefined}
        placeholder={t.palette.placeholder}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          chosen.value = 0;
        }}
        onKeyDown={onKeyDown}
      />
      <ul class="palette" role="listbox" id={id} aria-label={t.palette.title}>
        {found.value.map((command, index) => (
          <li
            key={command.id}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen.value}
            onClick={() => run(command)}
            onKeyDown={onKeyDown}
          >
            {command.words}
            <kbd>{command.hint}</kbd>
          </li>
        ))}
      </ul>
      {found.value.length === 0 && <p class="hint">{t.palette.none}</p>}
    </Dialog>
  );
}
