import { useSignal } from "@preact/signals";
import { call, get, post } from "../api/http";
import type { ApiCredentials, LoginOptions, OwnSession } from "../api/types";
import { ago, date } from "../lib/format";
import { Button } from "../parts/Button";
import { Confirm } from "../parts/Confirm";
import { Problem } from "../parts/Problem";
import { Pending, useResource } from "../parts/Resource";
import { Secret } from "../parts/Secret";
import { TextField } from "../parts/TextField";
import { useAttempt } from "../parts/useAttempt";
import { openDialog } from "../state/dialogs";
import { say, sayError } from "../state/notices";
import { authIsOff, isAdmin, loadProfile, logOut, logOutAtProvider, profile, seesUsers } from "../state/session";
import { t } from "../texts";

/** The account of the user: password, sessions, API key. */
export default function Account() {
  const own = profile.value;
  if (!own) return null;
  if (authIsOff.value) {
    return (
      <div class="page">
        <h1>{t.account.title}</h1>
        <p class="empty">{t.account.authIsOff}</p>
      </div>
    );
  }
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.account.title}</h1>
        {seesUsers.value && <a href="/users">{t.navigation.users}</a>}
        {isAdmin.value && <a href="/admin">{t.navigation.admin}</a>}
        <Button onClick={() => void logOut()}>{t.account.logOut}</Button>
        <ProviderLogout />
      </header>
      <dl class="details">
        <dt>{t.account.username}</dt>
        <dd>{own.username}</dd>
        <dt>{t.account.name}</dt>
        <dd>{[own.firstName, own.lastName].filter(Boolean).join(" ") || t.inspector.none}</dd>
        <dt>{t.account.email}</dt>
        <dd>{own.email ?? t.inspector.none}</dd>
        <dt>{t.account.role}</dt>
        <dd>{own.workspace_role ? (t.users.roles[own.workspace_role] ?? own.workspace_role) : t.inspector.none}</dd>
        {own.roles.length > 0 && (
          <>
            <dt>{t.account.rights}</dt>
            <dd>{own.roles.map((role) => t.users.rights[role] ?? role).join(", ")}</dd>
          </>
        )}
      </dl>
      <Sessions />
      <ApiKey />
      <Password />
    </div>
  );
}

/** Ends the session at the identity provider, too, where there is one. */
function ProviderLogout() {
  const options = useResource<LoginOptions>((signal) => get("/oidc", {}, signal), []);
  if (!options.value?.enabled) return null;
  return (
    <Button kind="quiet" onClick={() => void logOutAtProvider().catch(sayError)}>
      {t.account.logOutAtProvider}
    </Button>
  );
}

function Password() {
  const present = useSignal("");
  const next = useSignal("");
  const attempt = useAttempt();
  const change = async (event: Event): Promise<void> => {
    event.preventDefault();
    const body = { current_password: present.value, password: next.value };
    if (!(await attempt.run(() => post("/password", body)))) return;
    present.value = next.value = "";
    say(t.account.passwordChanged);
  };
  return (
    <section aria-labelledby="password">
      <h2 id="password">{t.account.password}</h2>
      <form class="form narrow" onSubmit={(event) => void change(event)}>
        <TextField
          label={t.account.presentPassword}
          value={present}
          type="password"
          autocomplete="current-password"
          maxLength={1024}
          required
        />
        <TextField
          label={t.login.newPassword}
          value={next}
          type="password"
          autocomplete="new-password"
          minLength={8}
          maxLength={1024}
          required
        />
        <Problem text={attempt.problem} />
        <Button type="submit">{t.account.changePassword}</Button>
      </form>
    </section>
  );
}

/** Where the user is logged in. */
function Sessions() {
  const list = useResource<OwnSession[]>((signal) => get("/sessions", {}, signal), []);
  const end = async (session: OwnSession): Promise<void> => {
    try {
      await call("DELETE", `/sessions/${session.id}`);
      say(t.account.sessionEnded);
      list.reload();
    } catch (error) {
      sayError(error);
    }
  };
  const endAll = async (): Promise<void> => {
    try {
      await call("DELETE", "/sessions");
      await loadProfile();
    } catch (error) {
      sayError(error);
    }
  };
  const ask = (): void =>
    openDialog(() => (
      <Confirm
        title={t.account.everywhere}
        text={t.account.everywhereHint}
        submit={t.account.everywhere}
        onConfirm={() => void endAll()}
      />
    ));
  return (
    <section aria-labelledby="sessions">
      <h2 id="sessions">{t.account.sessions}</h2>
      {!list.value && <Pending of={list} />}
      <ul class="rows">
        {list.value?.map((each) => (
          <li key={each.id}>
            <strong>{program(each.user_agent)}</strong>
            <span title={each.user_agent}>{each.ip}</span>
            <span class="hint">{t.account.since(date(each.start))}</span>
            <span class="hint">{t.account.lastUsed(ago(each.last_access))}</span>
            <span class="grow" />
            {each.is_current ? (
              <span class="status">{t.account.thisSession}</span>
            ) : (
              <Button kind="quiet" onClick={() => void end(each)}>
                {t.account.endSession}
              </Button>
            )}
          </li>
        ))}
      </ul>
      <p>
        <Button onClick={ask}>{t.account.everywhere}</Button>
      </p>
    </section>
  );
}

/** Return the name of a browser and its system, as far as it tells them. */
function program(agent: string): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Safari|curl|python-httpx)\//.exec(agent)?.[1];
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(agent)?.[1];
  const names: Record<string, string> = { Edg: "Edge", OPR: "Opera", "Mac OS X": "macOS" };
  const known = [browser, system].filter((each) => each !== undefined).map((each) => names[each] ?? each);
  return known.join(", ") || agent || t.account.unknownProgram;
}

/** The API key, which is made when it is first asked for; its secret is shown once. */
function ApiKey() {
  const found = useSignal<ApiCredentials | null>(null);
  const attempt = useAttempt();
  const show = (path: string, method: "GET" | "POST"): Promise<boolean> =>
    attempt.run(async () => {
      found.value = await call<ApiCredentials>(method, path);
    });
  const revoke = (): Promise<boolean> =>
    attempt.run(async () => {
      await call("DELETE", "/api_credentials");
      found.value = null;
      say(t.account.keyRevoked);
    });
  const ask = (title: string, text: string, onConfirm: () => void): void =>
    openDialog(() => <Confirm title={title} text={text} submit={title} onConfirm={onConfirm} />);
  return (
    <section aria-labelledby="key">
      <h2 id="key">{t.account.key}</h2>
      <p class="hint">{t.account.keyHint}</p>
      {found.value && (
        <div class="form narrow">
          <Secret label={t.account.keyName} text={found.value.api_key} />
          {found.value.api_secret ? (
            <>
              <Secret label={t.account.secret} text={found.value.api_secret} first />
              <p role="status">{t.account.secretOnce}</p>
            </>
          ) : (
            <p role="status">{t.account.secretShown}</p>
          )}
        </div>
      )}
      <Problem text={attempt.problem} />
      <p class="queue-actions">
        {!found.value && <Button onClick={() => void show("/api_credentials", "GET")}>{t.account.showKey}</Button>}
        {found.value && (
          <Button
            onClick={() =>
              ask(t.account.newSecret, t.account.newSecretHint, () => void show("/api_credentials/rotate", "POST"))
            }
          >
            {t.account.newSecret}
          </Button>
        )}
        {found.value && (
          <Button kind="quiet" onClick={() => ask(t.account.revokeKey, t.account.newSecretHint, () => void revoke())}>
            {t.account.revokeKey}
          </Button>
        )}
      </p>
    </section>
  );
}
