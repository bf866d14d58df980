import { type Signal, useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { call, post } from "../api/http";
import type { TenantMember, User } from "../api/types";
import { randomPassword } from "../lib/password";
import { datasets } from "../state/datasets";
import { closeDialog, openDialog } from "../state/dialogs";
import { say } from "../state/notices";
import { profile } from "../state/session";
import { t } from "../texts";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Problem } from "./Problem";
import { Secret } from "./Secret";
import { TextField } from "./TextField";
import { useAttempt } from "./useAttempt";

const USERS = "/keycloak/admin/users";
const ROLES = ["viewer", "editor", "admin"] as const;
const RIGHTS = ["manage-users", "view-users", "query-users", "query-groups"] as const;

/** A choice of one of the roles, with what it means. */
function RoleField({ value, first = false }: { value: Signal<string>; first?: boolean }) {
  const id = useId();
  return (
    <>
      <label for={id}>{t.users.columns.role}</label>
      <select
        id={id}
        data-autofocus={first || undefined}
        value={value.value}
        onChange={(event) => {
          value.value = event.currentTarget.value;
        }}
      >
        {ROLES.map((each) => (
          <option key={each} value={each}>
            {t.users.roles[each]}
          </option>
        ))}
      </select>
      <p class="hint">{value.value === "admin" ? t.users.oneAdmin : t.users.roleHints[value.value]}</p>
    </>
  );
}

/** Asks for a new user, and then shows the temporary password. */
export function NewUserDialog({ onChange }: { onChange: () => void }) {
  const username = useSignal("");
  const firstName = useSignal("");
  const lastName = useSignal("");
  const role = useSignal<string>("viewer");
  const attempt = useAttempt();
  const create = async (event: Event): Promise<void> => {
    event.preventDefault();
    const temporary = randomPassword();
    const isDone = await attempt.run(async () => {
      const body = {
        username: username.value.trim(),
        password: randomPassword(), // nobody learns it
        firstName: firstName.value.trim(),
        lastName: lastName.value.trim(),
        workspace_role: role.value,
      };
      const created = await post<User>(USERS, body);
      onChange();
      await post(`${USERS}/${created.id}/reset-password`, { password: temporary });
    });
    if (isDone) openDialog(() => <TemporaryPassword username={username.peek().trim()} password={temporary} />);
  };
  return (
    <Dialog title={t.users.create} onClose={closeDialog}>
      <form class="form" onSubmit={(event) => void create(event)}>
        <TextField label={t.account.username} value={username} minLength={3} required first />
        <TextField label={t.users.firstName} value={firstName} required />
        <TextField label={t.users.lastName} value={lastName} required />
        <RoleField value={role} />
        <Problem text={attempt.problem} />
        <div class="form-end">
          <Button onClick={closeDialog}>{t.cancel}</Button>
          <Button type="submit" kind="main">
            {t.users.create}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Shows a temporary password, once. */
function TemporaryPassword({ username, password }: { username: string; password: string }) {
  return (
    <Dialog title={t.users.temporary(username)} onClose={closeDialog}>
      <div class="form">
        <Secret label={t.login.password} text={password} first />
        <p>{t.users.temporaryHint}</p>
        <div class="form-end">
          <Button kind="main" onClick={closeDialog}>
            {t.close}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

interface UserProps {
  user: User;
  /** The user as a member of the workspace; undefined for a member of others. */
  member: TenantMember | undefined;
  onChange: () => void;
}

/** What can be done with a user: role, rights, password, sessions, whether the user may log in, deletion. */
export function UserDialog({ user, member, onChange }: UserProps) {
  const attempt = useAttempt();
  const isOwn = profile.value?.user_id === user.id;
  const path = `${USERS}/${user.id}`;
  const finish = (words: string): void => {
    say(words);
    onChange();
    closeDialog();
  };
  const act = async (work: () => Promise<unknown>, words: string): Promise<void> => {
    if (await attempt.run(work)) finish(words);
  };
  const reset = async (): Promise<void> => {
    const temporary = randomPassword();
    if (await attempt.run(() => post(`${path}/reset-password`, { password: temporary })))
      openDialog(() => <TemporaryPassword username={user.username} password={temporary} />);
  };
  const name = user.username;
  return (
    <Dialog title={t.users.manageOf(name)} onClose={closeDialog}>
      <Problem text={attempt.problem} />
      {isOwn ? (
        <p>{t.users.own}</p>
      ) : (
        <>
          {member && <RoleForm user={user} member={member} onAct={act} />}
          <RightsForm user={user} onAct={act} />
          <h3>{t.users.account}</h3>
          <p class="queue-actions">
            <Button onClick={() => void reset()}>{t.users.reset}</Button>
            <Button onClick={() => void act(() => post(`${path}/logout`), t.users.loggedOut(name))}>
              {t.users.logOut}
            </Button>
            <Button
              onClick={() =>
                void act(
                  () => call("PATCH", path, { json: { enabled: !user.enabled } }),
                  user.enabled ? t.users.isDisabled(name) : t.users.isEnabled(name),
                )
              }
            >
              {user.enabled ? t.users.disable : t.users.enable}
            </Button>
            <Button
              kind="danger"
              onClick={() => openDialog(() => <Deletion user={user} member={member} onChange={onChange} />)}
            >
              {t.users.remove}
            </Button>
          </p>
        </>
      )}
    </Dialog>
  );
}

interface FormProps {
  user: User;
  onAct: (work: () => Promise<unknown>, words: string) => Promise<void>;
}

function RoleForm({ user, member, onAct }: FormProps & { member: TenantMember }) {
  const role = useSignal(member.role);
  const submit = (event: Event): void => {
    event.preventDefault();
    const path = `/workspace/members/${user.id}/role`;
    void onAct(() => call("PUT", path, { json: { role: role.peek() } }), t.users.roleChanged(user.username));
  };
  return (
    <form class="form" onSubmit={submit}>
      <RoleField value={role} first />
      <div class="form-end">
        <Button type="submit" disabledReason={role.value === member.role ? t.users.sameRole : null}>
          {t.users.changeRole}
        </Button>
      </div>
    </form>
  );
}

function RightsForm({ user, onAct }: FormProps) {
  const chosen = useSignal<ReadonlySet<string>>(new Set(user.roles));
  const submit = (event: Event): void => {
    event.preventDefault();
    const json = { roles: [...chosen.peek()] };
    void onAct(() => call("PUT", `${USERS}/${user.id}/roles`, { json }), t.users.rightsChanged(user.username));
  };
  return (
    <form class="form" onSubmit={submit}>
      <fieldset>
        <legend>{t.account.rights}</legend>
        {RIGHTS.map((right) => (
          <label key={right} class="check-line">
            <input
              type="checkbox"
              checked={chosen.value.has(right)}
              onChange={() => {
                const next = new Set(chosen.value);
                if (!next.delete(right)) next.add(right);
                chosen.value = next;
              }}
            />
            {t.users.rights[right]}
          </label>
        ))}
      </fieldset>
      <div class="form-end">
        <Button type="submit">{t.users.changeRights}</Button>
      </div>
    </form>
  );
}

/** Says to whom the datasets of a user go, and deletes the user. */
function Deletion({ user, member, onChange }: UserProps) {
  const attempt = useAttempt();
  const names = [user.username, member?.email].filter(Boolean);
  const n = (datasets.value ?? []).filter((each) => names.includes(each.owned_by)).length;
  const remove = async (): Promise<void> => {
    if (!(await attempt.run(() => call("DELETE", `${USERS}/${user.id}`)))) return;
    say(t.users.removed(user.username));
    onChange();
    closeDialog();
  };
  return (
    <Dialog title={t.users.removeTitle(user.username)} onClose={closeDialog}>
      <p>{t.users.removeHint(n)}</p>
      <Problem text={attempt.problem} />
      <div class="form-end">
        <Button onClick={closeDialog}>{t.cancel}</Button>
        <button type="button" class="button danger" data-autofocus onClick={() => void remove()}>
          {t.users.remove}
        </button>
      </div>
    </Dialog>
  );
}
