import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { get, post } from "../api/http";
import type { AuditPage } from "../api/types";
import { date } from "../lib/format";
import { Pager } from "../parts/Pager";
import { Pending, useResource } from "../parts/Resource";
import { SearchForm } from "../parts/SearchForm";
import { datasets } from "../state/datasets";
import { say, sayError } from "../state/notices";
import { t } from "../texts";

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] as const;
const FIXED = ["RUN_MODE", "DISABLE_AUTH"];
const MOST = 50;
type Settings = Record<string, string>;

/** The settings of the service, and the audit: for administrators. */
export default function Admin() {
  const settings = useResource<{ settings: Settings }>((signal) => get("/admin/settings", {}, signal), []);
  return (
    <div class="page">
      <h1>{t.navigation.admin}</h1>
      <section aria-labelledby="settings">
        <h2 id="settings">{t.admin.settings}</h2>
        {settings.value ? <SettingList initial={settings.value.settings} /> : <Pending of={settings} />}
      </section>
      <section aria-labelledby="audit">
        <h2 id="audit">{t.admin.audit}</h2>
        <p class="hint">{t.admin.auditHint}</p>
        <Audit />
      </section>
    </div>
  );
}

function SettingList({ initial }: { initial: Settings }) {
  const values = useSignal(initial);
  const change = async (key: string, value: string): Promise<void> => {
    const before = values.peek();
    values.value = { ...before, [key]: value };
    try {
      const answer = await post<{ value: string }>("/admin/settings", { key, value });
      values.value = { ...values.peek(), [key]: answer.value };
      say(t.admin.changed(t.admin.names[key] ?? key, t.admin.states[answer.value] ?? answer.value));
    } catch (error) {
      values.value = { ...values.peek(), [key]: before[key] ?? "" };
      sayError(error);
    }
  };
  return (
    <ul class="rows">
      {Object.entries(values.value).map(([key, value]) => (
        <li key={key}>
          <Setting name={key} value={value} onChange={(next) => void change(key, next)} />
        </li>
      ))}
    </ul>
  );
}

function Setting({ name, value, onChange }: { name: string; value: string; onChange: (value: string) => void }) {
  const id = useId();
  const words = t.admin.names[name] ?? name;
  if (FIXED.includes(name)) {
    return (
      <>
        <strong>{words}</strong>
        <span>{t.admin.values[value] ?? value}</span>
        <span class="hint">{t.admin.fixed}</span>
      </>
    );
  }
  if (value === "true" || value === "false") {
    return (
      <label class="check-line">
        <input
          type="checkbox"
          checked={value === "true"}
          onChange={(event) => onChange(String(event.currentTarget.checked))}
        />
        {words}
      </label>
    );
  }
  return (
    <>
      <label for={id}>{words}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {[...new Set([...LEVELS, value])].map((level) => (
          <option key={level}>{level}</option>
        ))}
      </select>
    </>
  );
}

/** Who did what, the newest first. */
function Audit() {
  const action = useSignal("");
  const offset = useSignal(0);
  const page = useResource<AuditPage>(
    (signal) => get("/admin/audit", { limit: MOST, offset: offset.value, action: action.value.trim() }, signal),
    [action.value, offset.value],
  );
  const columns = t.admin.columns;
  const nameOf = (id: string): string => datasets.value?.find((each) => each.id === id)?.display_name ?? id;
  return (
    <>
      <SearchForm label={t.admin.action} value={action} offset={offset} maxLength={200} />
      {!page.value && <Pending of={page} />}
      {page.value?.total === 0 && <p>{t.admin.none}</p>}
      {page.value && page.value.total > 0 && (
        <div class="table-box" role="region" tabIndex={0} aria-label={t.admin.entries}>
          <table>
            <thead>
              <tr>
                <th scope="col">{columns.when}</th>
                <th scope="col">{columns.who}</th>
                <th scope="col">{columns.what}</th>
                <th scope="col">{columns.dataset}</th>
                <th scope="col">{columns.target}</th>
                <th scope="col">{columns.outcome}</th>
              </tr>
            </thead>
            <tbody>
              {page.value.entries.map((entry, index) => (
                <tr key={`${entry.at} ${index}`}>
                  <td>{date(entry.at)}</td>
                  <td>{entry.username ?? entry.user_id ?? t.admin.nobody}</td>
                  <td>{entry.action}</td>
                  <td class="path">{entry.dataset_id ? nameOf(entry.dataset_id) : ""}</td>
                  <td class="path">{entry.target}</td>
                  <td>{t.admin.outcomes[entry.outcome] ?? entry.outcome}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page.value && <Pager offset={offset} size={MOST} shown={page.value.entries.length} total={page.value.total} />}
    </>
  );
}
