import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { BASE } from "#host";
import { ApiError, address, get, post } from "../api/http";
import type { LoginOptions } from "../api/types";
import { Pending, useResource } from "../parts/Resource";
import { Skeleton } from "../parts/Skeleton";
import { query } from "../router";
import { isKnown, profile } from "../state/session";
import { t } from "../texts";

/** The page for logging in, and for choosing a password in the place of a temporary one. */
export default function Login() {
  const mustChange = profile.value?.must_change_password === true;
  return (
    <main class="login">
      <h1>{t.app}</h1>
      {!isKnown.value ? <Skeleton /> : mustChange ? <NewPassword /> : <Ways />}
    </main>
  );
}

/** The address that was asked for, which must be one of the app. */
function target(): string {
  const found = new URL(query.peek().get("next") ?? `${BASE}/`, location.origin);
  return found.origin === location.origin ? found.pathname + found.search : `${BASE}/`;
}

/** Load the app again at the address that was asked for. */
function enter(): void {
  location.assign(target());
}

const wordsOf = (error: unknown): string => (error instanceof ApiError ? error.message : String(error));

/** The ways in which users log in here. */
function Ways() {
  const options = useResource<LoginOptions>((signal) => get("/oidc", {}, signal), []);
  if (!options.value) return <Pending of={options} />;
  const { enabled, password } = options.value;
  return (
    <>
      {enabled && (
        <p class="form">
          <a class={password ? "button" : "button main"} href={address("/oidc/login", { next: target() })}>
            {t.login.single}
          </a>
        </p>
      )}
      {enabled && password && <p class="hint">{t.login.or}</p>}
      {password && <Credentials />}
    </>
  );
}

function Credentials() {
  const name = useSignal("");
  const password = useSignal("");
  const problem = useSignal("");
  const id = useId();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const found = await post<{ must_change_password: boolean }>("/login", {
        username: name.value,
        password: password.value,
      });
      if (found.must_change_password) location.reload();
      else enter();
    } catch (error) {
      problem.value = wordsOf(error);
    }
  };
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <h2>{t.login.title}</h2>
      <label for={`${id}-name`}>{t.login.username}</label>
      <input
        id={`${id}-name`}
        autocomplete="username"
        autocapitalize="none"
        required
        value={name.value}
        onInput={(event) => {
          name.value = event.currentTarget.value;
        }}
      />
      <label for={`${id}-password`}>{t.login.password}</label>
      <input
        id={`${id}-password`}
        type="password"
        autocomplete="current-password"
        required
        value={password.value}
        onInput={(event) => {
          password.value = event.currentTarget.value;
        }}
      />
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <button type="submit" class="button main">
        {t.login.submit}
      </button>
    </form>
  );
}

function NewPassword() {
  const present = useSignal("");
  const next = useSignal("");
  const problem = useSignal("");
  const id = useId();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await post("/password", { current_password: present.value, password: next.value });
      enter();
    } catch (error) {
      problem.value = wordsOf(error);
    }
  };
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <h2>{t.login.change}</h2>
      <p>{t.login.changeHint}</p>
      <label for={`${id}-present`}>{t.login.password}</label>
      <input
        id={`${id}-present`}
        type="password"
        autocomplete="current-password"
        required
        value={present.value}
        onInput={(event) => {
          present.value = event.currentTarget.value;
        }}
      />
      <label for={`${id}-next`}>{t.login.newPassword}</label>
      <input
        id={`${id}-next`}
        type="password"
        autocomplete="new-password"
        minLength={8}
        required
        value={next.value}
        onInput={(event) => {
          next.value = event.currentTarget.value;
        }}
      />
      {problem.value && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <button type="submit" class="button main">
        {t.login.change}
      </button>
    </form>
  );
}
