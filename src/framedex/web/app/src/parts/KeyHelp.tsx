import { letterKeys, setLetterKeys } from "../keys/dispatcher";
import { KEYS, keyNames, SCOPES } from "../keys/table";
import { closeDialog } from "../state/dialogs";
import { t } from "../texts";
import { Dialog } from "./Dialog";

/** All keys, by the part of the app in which they hold. */
export function KeyHelp() {
  return (
    <Dialog title={t.keys.title} onClose={closeDialog} wide>
      <label class="check-line">
        <input
          type="checkbox"
          checked={letterKeys.value}
          onChange={(event) => setLetterKeys(event.currentTarget.checked)}
        />
        {t.keys.letters}
      </label>
      <div class="key-help" tabIndex={0} role="region" aria-label={t.keys.title}>
        {[...SCOPES].reverse().map((scope) => (
          <section key={scope}>
            <h3>{t.keys.scopes[scope]}</h3>
            <dl>
              {KEYS.filter((key) => key.scope === scope).map((key) => (
                <div key={key.id}>
                  <dt>
                    {keyNames(key).map((name) => (
                      <kbd key={name}>{name}</kbd>
                    ))}
                  </dt>
                  <dd>{key.text}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
