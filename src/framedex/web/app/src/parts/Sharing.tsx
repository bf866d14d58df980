import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { call, get } from "../api/http";
import type { DatasetMember, DatasetStatus } from "../api/types";
import { closeDialog, openDialog } from "../state/dialogs";
import { say } from "../state/notices";
import { t } from "../texts";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Problem } from "./Problem";
import { Pending, useResource } from "./Resource";
import { TextField } from "./TextField";
import { useAttempt } from "./useAttempt";

const ROLES = ["viewer", "editor"] as const;

/** Open the dialog that shares a dataset. */
export function openSharing(of: DatasetStatus): void {
  openDialog(() => <Sharing dataset={of} />);
}

/** Who may see and change a dataset: invitations, the members, and the end of sharing with each. */
function Sharing({ dataset: of }: { dataset: DatasetStatus }) {
  const members = useResource<DatasetMember[]>((signal) => get(`/manage/${of.id}/share`, {}, signal), [of.id]);
  const address = useSignal("");
  const role = useSignal<string>("viewer");
  const attempt = useAttempt();
  const share = (email: string, wanted: string): Promise<boolean> =>
    attempt.run(async () => {
      const json = { grant_to_user_email: email, role: wanted };
      await call("PUT", `/manage/${of.id}/invite`, { json });
      say(t.sharing.shared(email, t.sharing.roles[wanted] ?? wanted));
      members.reload();
    });
  const end = (email: string): Promise<boolean> =>
    attempt.run(async () => {
      await call("DELETE", `/manage/${of.id}/share`, { query: { email } });
      say(t.sharing.ended(email));
      members.reload();
    });
  const invite = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await share(address.value.trim(), role.value)) address.value = "";
  };
  return (
    <Dialog title={t.sharing.title(of.display_name)} onClose={closeDialog}>
      <form class="form" onSubmit={(event) => void invite(event)}>
        <TextField label={t.sharing.address} value={address} required maxLength={320} first />
        <RoleChoice label={t.sharing.role} value={role.value} onChange={(next) => (role.value = next)} />
        <Problem text={attempt.problem} />
        <div class="form-end">
          <Button type="submit" kind="main">
            {t.sharing.invite}
          </Button>
        </div>
      </form>
      <h3>{t.sharing.members}</h3>
      <p class="hint">{t.sharing.hint}</p>
      {!members.value && <Pending of={members} />}
      <ul class="rows">
        {members.value?.map((each) => (
          <li key={each.email}>
            <strong class="path">{each.email}</strong>
            <span class="grow" />
            {each.role === "owner" ? (
              <span>{t.sharing.roles.owner}</span>
            ) : (
              <>
                <RoleChoice
                  label={t.sharing.roleOf(each.email)}
                  hidden
                  value={each.role}
                  onChange={(next) => void share(each.email, next)}
                />
                <Button kind="quiet" label={t.sharing.endOf(each.email)} onClick={() => void end(each.email)}>
                  {t.sharing.end}
                </Button>
              </>
            )}
          </li>
        ))}
      </ul>
      {members.value?.length === 0 && <p>{t.sharing.nobody}</p>}
    </Dialog>
  );
}

interface RoleChoiceProps {
  label: string;
  value: string;
  /** Whether only screen readers get the label. */
  hidden?: boolean;
  onChange: (role: string) => void;
}

function RoleChoice({ label, value, hidden = false, onChange }: RoleChoiceProps) {
  const id = useId();
  return (
    <>
      <label for={id} class={hidden ? "visually-hidden" : undefined}>
        {label}
      </label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {ROLES.map((role) => (
          <option key={role} value={role}>
            {t.sharing.roles[role]}
          </option>
        ))}
      </select>
    </>
  );
}
