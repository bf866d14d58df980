import { useSignal } from "@preact/signals";
import { get } from "../api/http";
import type { MemberList, User, UserList } from "../api/types";
import { ago, count } from "../lib/format";
import { Button } from "../parts/Button";
import { Pager } from "../parts/Pager";
import { Pending, useResource } from "../parts/Resource";
import { SearchForm } from "../parts/SearchForm";
import { NewUserDialog, UserDialog } from "../parts/UserDialogs";
import { openDialog } from "../state/dialogs";
import { manages } from "../state/session";
import { t } from "../texts";

const MOST = 50;

/** The users of the service, by name: for those who may view or manage them. */
export default function Users() {
  const search = useSignal("");
  const offset = useSignal(0);
  const list = useResource<UserList>(
    (signal) => get("/keycloak/admin/users", { search: search.value, max_results: MOST, first: offset.value }, signal),
    [search.value, offset.value],
  );
  const members = useResource<MemberList>((signal) => get("/workspace/members", {}, signal), []);
  const member = (user: User) => members.value?.members.find((each) => each.user_id === user.id);
  const reload = (): void => {
    list.reload();
    members.reload();
  };
  const columns = t.users.columns;
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.navigation.users}</h1>
        <SearchForm label={t.users.search} value={search} offset={offset} maxLength={1000} />
        {manages.value && (
          <Button kind="main" onClick={() => openDialog(() => <NewUserDialog onChange={reload} />)}>
            {t.users.create}
          </Button>
        )}
      </header>
      {!list.value && <Pending of={list} />}
      {list.value && <p role="status">{t.users.count(list.value.total)}</p>}
      {list.value && list.value.total > 0 && (
        <div class="table-box" role="region" tabIndex={0} aria-label={t.navigation.users}>
          <table>
            <thead>
              <tr>
                <th scope="col">{columns.username}</th>
                <th scope="col">{columns.name}</th>
                <th scope="col">{columns.role}</th>
                <th scope="col">{columns.state}</th>
                <th scope="col">{columns.access}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {list.value.users.map((user) => {
                const role = member(user)?.role;
                return (
                  <tr key={user.id}>
                    <th scope="row" class="path">
                      {user.username}
                    </th>
                    <td>{[user.firstName, user.lastName].filter(Boolean).join(" ")}</td>
                    <td>{role ? (t.users.roles[role] ?? role) : t.users.noMember}</td>
                    <td>{user.enabled ? t.users.enabled : t.users.disabled}</td>
                    <td>{user.lastAccess === null ? "" : ago(new Date(user.lastAccess).toISOString())}</td>
                    <td>
                      {manages.value && (
                        <Button
                          label={t.users.manageOf(user.username)}
                          onClick={() =>
                            openDialog(() => <UserDialog user={user} member={member(user)} onChange={reload} />)
                          }
                        >
                          {t.users.manage}
                        </Button>
                      )}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {list.value && <Pager offset={offset} size={MOST} shown={list.value.users.length} total={list.value.total} />}
      <p class="hint">{t.users.hint(count(members.value?.total ?? 0))}</p>
    </div>
  );
}
